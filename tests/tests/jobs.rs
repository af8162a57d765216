//! The programs of users, as the ranks of jobs.

#[path = "programs.rs"]
mod programs;

use std::process::Command;

use caribou_tests::job::{Job, launcher, side_by_side};

/// This very program, as the ranks of jobs that each execute one of the tests in `programs`: one thread starts MPI once.
#[test]
fn programs_give_in_every_process_what_they_give_in_one() {
    let tests = std::env::current_exe().expect("a test is a program");
    let listed = Command::new(&tests).args(["programs::", "--list", "--format=terse"]).output();
    let listed = String::from_utf8(listed.expect("it lists its tests").stdout).expect("names are text");
    let names: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    assert!(names.len() >= 5, "{listed}");
    side_by_side(names, |name| {
        let Some(mut command) = launcher(3) else { return };
        command.arg(&tests).args([name, "--exact", "--color=never"]);
        let ended = Job::start(command).wait();
        // Lines of processes that speak at once may be torn, but not within a number and its word.
        let passed = ended.stdout.join("\n").matches("1 passed").count();
        assert!(ended.status.success() && passed == 3, "{ended:?}");
    });
}
