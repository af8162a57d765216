//! Limits the CPU time of one rank's workers by a control group, as cloud providers limit small instances.
//!
//! Version 1 groups take thread ids in the file `tasks`. Version 2 groups take them in `cgroup.threads` once the group
//! is *threaded*. Both need write access to the group of this process. Containers often deny it; the caller then goes
//! on without a quota.
//!
//! A killed process cannot remove its group. So each group has a *keeper*: this same program, started again with a
//! hidden first argument, in its own process group so that Ctrl-C does not reach it. The keeper removes the group when
//! its standard input ends, which happens however its parent ends. If the keeper is also killed, the next program that
//! makes a group removes this one.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;

/// The hidden first argument that makes a program the keeper of the group in the next argument.
const ARGUMENT: &str = "--keep-a-control-group";

/// The keeper tries to remove a group this often, at this interval, while threads still leave it.
const LOOKS: u32 = 500;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Period of the quota, us. With the kernel's default of 100 ms, a quota of 50 % lets a worker run for 50 ms and stops
/// it for 50 ms. Iterations of a few ms would see a fast vCPU that sometimes freezes. With 10 ms they see a slow vCPU.
const PERIOD_US: u64 = 10_000;

/// A control group that limits the threads put into it. Dropping it frees the threads and removes the group.
#[derive(Debug)]
pub(crate) struct Quota {
    group: PathBuf,
    /// The file of the group that takes thread ids; the parent has one of the same name.
    threads: &'static str,
    /// None where it could not be started.
    keeper: Option<Child>,
}

impl Quota {
    /// Makes a group whose threads together get the CPU time of `vcpus` vCPUs.
    ///
    /// # Errors
    /// The system's answer when neither version of control groups could be used.
    pub(crate) fn new(name: &str, vcpus: f64) -> io::Result<Self> {
        let quota_us = (vcpus * PERIOD_US as f64).round() as u64;
        Self::version_1(name, quota_us).or_else(|first| match Self::version_2(name, quota_us) {
            // Prefers the error of the version that exists: without version 1 the first error is only "not found".
            Err(second) if first.kind() == io::ErrorKind::NotFound => Err(second),
            other => other.map_err(|_| first),
        })
    }

    /// Puts threads of this process into the group.
    ///
    /// # Errors
    /// The system's answer.
    pub(crate) fn confine(&self, threads: &[Pid]) -> io::Result<()> {
        let mut ids = threads.iter().map(|thread| thread.as_raw_nonzero().to_string());
        ids.try_for_each(|id| fs::write(self.group.join(self.threads), id))
    }

    fn version_1(name: &str, quota_us: u64) -> io::Result<Self> {
        let parent = parent_group(&["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"], "cpu")?;
        let this = Self::make(&parent, name, "tasks")?;
        fs::write(this.group.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
        fs::write(this.group.join("cpu.cfs_quota_us"), quota_us.to_string())?;
        Ok(this)
    }

    fn version_2(name: &str, quota_us: u64) -> io::Result<Self> {
        let parent = parent_group(&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "")?;
        let this = Self::make(&parent, name, "cgroup.threads")?;
        fs::write(this.group.join("cgroup.type"), "threaded")?;
        fs::write(parent.join("cgroup.subtree_control"), "+cpu")?;
        fs::write(this.group.join("cpu.max"), format!("{quota_us} {PERIOD_US}"))?;
        Ok(this)
    }

    fn make(parent: &Path, name: &str, threads: &'static str) -> io::Result<Self> {
        sweep(parent);
        let group = parent.join(format!("caribou-{name}-{}", std::process::id()));
        // The keeper starts first, so that no signal can leave a group without a keeper.
        let this = Self { keeper: start_keeper(&group).ok(), group, threads };
        fs::create_dir(&this.group)?;
        Ok(this)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // A group with threads cannot be removed, so the remaining threads go back to the parent group.
        let threads = fs::read_to_string(self.group.join(self.threads)).unwrap_or_default();
        if let Some(parent) = self.group.parent() {
            for id in threads.lines() {
                let _ = fs::write(parent.join(self.threads), id);
            }
        }
        let _ = fs::remove_dir(&self.group);
        if let Some(keeper) = &mut self.keeper {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}

fn start_keeper(group: &Path) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ARGUMENT).arg(group).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Keeps a group if this process was started as a keeper. Every `main` calls this at its start.
#[must_use]
pub(crate) fn run_as_keeper_if_requested(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let Some(group) = arguments.next() else { return Some(ExitCode::from(2)) };
    hold_until_parent_exits(Path::new(&group), io::stdin());
    Some(ExitCode::SUCCESS)
}

/// Removes the group when `parent` has ended and the last thread has left the group.
fn hold_until_parent_exits(group: &Path, mut parent: impl Read) {
    let _ = parent.read_to_end(&mut Vec::new());
    for _ in 0..LOOKS {
        if !group.exists() || fs::remove_dir(group).is_ok() {
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Removes groups of killed programs.
fn sweep(parent: &Path) {
    for group in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = group.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("caribou-")?.rsplit('-').next());
        if owner.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_dir(group.path());
        }
    }
}

/// The group of this process under the first of `roots` that exists, for the hierarchy of `controller` ("" for version 2).
fn parent_group(roots: &[&str], controller: &str) -> io::Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let path = groups.lines().find_map(|line| own_path(line, controller)).ok_or(io::ErrorKind::NotFound)?;
    let under = |root: &&str| Path::new(root).join(path.trim_start_matches('/'));
    let marker = if controller.is_empty() { "cgroup.controllers" } else { "cpu.cfs_quota_us" };
    roots
        .iter()
        .map(under)
        .find(|group| group.join("tasks").exists() || group.join(marker).exists())
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The path in a line `id:controllers:path` of `/proc/self/cgroup`, if the line is for the hierarchy of `controller`.
fn own_path<'a>(line: &'a str, controller: &str) -> Option<&'a str> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    controllers.split(',').any(|name| name == controller).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_both_versions() {
        assert_eq!(own_path("1:cpu,cpuacct:/user", "cpu"), Some("/user"));
        assert_eq!(own_path("2:cpuacct:/user", "cpu"), None);
        assert_eq!(own_path("0::/user/a:b", ""), Some("/user/a:b"));
    }

    #[test]
    fn a_keeper_waits_for_its_parent_and_for_the_last_thread() {
        let group = std::env::temp_dir().join(format!("caribou-group-{}", std::process::id()));
        fs::create_dir_all(group.join("busy")).unwrap();
        let (reader, parent) = io::pipe().unwrap();
        let keeper = thread::spawn({
            let group = group.clone();
            move || hold_until_parent_exits(&group, reader)
        });
        thread::sleep(2 * LOOK_EVERY);
        assert!(group.exists() && !keeper.is_finished());
        drop(parent);
        thread::sleep(2 * LOOK_EVERY);
        assert!(group.exists(), "somebody is in it");
        fs::remove_dir(group.join("busy")).unwrap();
        keeper.join().unwrap();
        assert!(!group.exists());
    }

    #[test]
    fn an_ordinary_program_keeps_nothing() {
        assert!(run_as_keeper_if_requested(std::env::args_os()).is_none());
    }

    #[test]
    fn a_quota_leaves_nothing_behind() {
        let Ok(quota) = Quota::new("test", 0.5) else {
            println!("skipped: control groups are not writable here");
            return;
        };
        let group = quota.group.clone();
        // No process has this id: as if one had been killed.
        let stale = group.with_file_name("caribou-rank-0-4194999");
        fs::create_dir(&stale).unwrap();
        drop(Quota::new("second", 0.5).unwrap());
        assert!(group.exists() && !stale.exists());
        drop(quota);
        assert!(!group.exists());
    }
}
