//! Finds out which commit is built, for the record of a run; `unknown` outside of a repository.

use std::process::Command;

fn main() {
    let said = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let hash = said.ok().filter(|said| said.status.success());
    let hash = hash.and_then(|said| String::from_utf8(said.stdout).ok());
    println!("cargo::rustc-env=GIT_HASH_OF_BUILD={}", hash.as_deref().map_or("unknown", str::trim));
    // The log grows with every commit and checkout.
    let log = Command::new("git").args(["rev-parse", "--git-path", "logs/HEAD"]).output();
    let log = log.ok().filter(|said| said.status.success());
    if let Some(log) = log.and_then(|said| String::from_utf8(said.stdout).ok()) {
        println!("cargo::rerun-if-changed={}", log.trim());
    }
    println!("cargo::rerun-if-changed=build.rs");
}
