use super::levels::Version;
use super::*;

const MOUNTS_1: &str = "\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
const MOUNTS_2: &str = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

/// A machine given by its files.
fn files<'f>(files: &'f [(&'f str, &'f str)]) -> impl Fn(&Path) -> Option<String> + 'f {
    |path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
}

fn folders(membership: &str, mounts: &str) -> (Version, Vec<String>) {
    let levels = Levels::of("cpu", membership, mounts).expect("the hierarchy is mounted");
    (levels.version, levels.folders.iter().map(|folder| folder.display().to_string()).collect())
}

fn quota(all: &[(&str, &str)]) -> Option<f64> {
    let read = files(all);
    Some(of_process("cpu", &read)?.quota(&read)?.vcpus)
}

#[test]
fn all_levels_up_to_the_mount_count_in_both_versions() {
    let one = folders("4:cpu,cpuacct:/pods/a\n3:memory:/m\n0::/\n", MOUNTS_1);
    let expected = ["/sys/fs/cgroup/cpu/pods/a", "/sys/fs/cgroup/cpu/pods", "/sys/fs/cgroup/cpu/"];
    assert_eq!(one, (Version::One, expected.map(str::to_owned).to_vec()));
    let two = folders("0::/system.slice/job\n", MOUNTS_2);
    let expected = ["/sys/fs/cgroup/system.slice/job", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/"];
    assert_eq!(two, (Version::Two, expected.map(str::to_owned).to_vec()));
}

#[test]
fn a_container_sees_its_own_group_as_the_root() {
    let mounted = "32 31 0:29 /docker/c1 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
    let inside = folders("4:cpu:/docker/c1/job\n", mounted).1;
    assert_eq!(inside, ["/sys/fs/cgroup/cpu/job", "/sys/fs/cgroup/cpu/"]);
    // In a namespace where the groups above have no name, or where the mount of another container is visible.
    for outside in ["4:cpu:/../c2\n", "4:cpu:/docker/c10\n"] {
        assert_eq!(folders(outside, mounted).1, ["/sys/fs/cgroup/cpu/"]);
    }
}

#[test]
fn a_hierarchy_that_is_not_mounted_says_nothing() {
    assert_eq!(Levels::of("cpu", "4:cpu:/a\n", "22 27 0:21 / /proc rw - proc proc rw\n"), None);
    assert_eq!(Levels::of("cpu", "4:cpuset:/a\n", MOUNTS_1), None);
}

#[test]
fn the_tightest_level_is_the_quota() {
    let two = |own, parent| {
        quota(&[
            ("/proc/self/cgroup", "0::/jobs/one\n"),
            ("/proc/self/mountinfo", MOUNTS_2),
            ("/sys/fs/cgroup/jobs/one/cpu.max", own),
            ("/sys/fs/cgroup/jobs/cpu.max", parent),
        ])
    };
    assert_eq!(two("max 100000\n", "50000 100000\n"), Some(0.5));
    assert_eq!(two("150000 100000\n", "400000 100000\n"), Some(1.5));
    assert_eq!(two("max 100000\n", "max 100000\n"), None);
    assert_eq!(two("nonsense\n", "1 0\n"), None);
    let one = |own, parent| {
        quota(&[
            ("/proc/self/cgroup", "1:cpu:/jobs/one\n0::/\n"),
            ("/proc/self/mountinfo", MOUNTS_1),
            ("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us", own),
            ("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", parent),
            ("/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "10000\n"),
        ])
    };
    assert_eq!(one("-1\n", "5000\n"), Some(0.5));
    assert_eq!(one("200000\n", "-1\n"), Some(2.0));
    assert_eq!(one("-1\n", "-1\n"), None);
}

#[test]
fn a_quota_bounds_the_vcpus_and_its_last_part_counts() {
    let within = |quota| vcpus_within(quota, 4);
    assert_eq!([None, Some(8.0), Some(0.5), Some(1.5), Some(2.0)].map(within), [4, 4, 1, 2, 2]);
}

#[test]
fn throttling_of_every_level_is_seen_and_none_from_before_a_move_to_another_group() {
    let (group, own, parent) = (Mutex::new("/jobs/one"), Mutex::new(0), Mutex::new(0));
    let number = |number: &Mutex<u64>| *number.lock().unwrap();
    let read = |path: &Path| match path.to_str()? {
        "/proc/thread-self/cgroup" => Some(format!("0::{}\n", group.lock().unwrap())),
        "/proc/self/mountinfo" => Some(MOUNTS_2.to_owned()),
        "/sys/fs/cgroup/jobs/one/cpu.stat" => {
            Some(format!("nr_periods 3\nthrottled_usec {}\n", number(&own)))
        }
        "/sys/fs/cgroup/jobs/cpu.stat" => Some(format!("throttled_usec {}\n", number(&parent))),
        _ => None,
    };
    let throttling = Throttling::default();
    let read_at = |periods: u64| throttling.read_by(periods * MEMBERSHIP_AGE_MAX_NS, &read, &read);
    let first = read_at(0);
    *own.lock().unwrap() = 2;
    *parent.lock().unwrap() = 5;
    let second = read_at(1);
    assert_eq!(second.since(&first), 7_000);
    *group.lock().unwrap() = "/jobs";
    let third = read_at(2);
    assert_eq!(third.since(&second), 0);
    *parent.lock().unwrap() = 6;
    assert_eq!(read_at(3).since(&third), 1_000);
}

#[test]
fn a_thread_is_asked_for_its_groups_again_after_a_period_only() {
    let asked = Mutex::new(0);
    let read = |path: &Path| match path.to_str()? {
        "/proc/thread-self/cgroup" => {
            *asked.lock().unwrap() += 1;
            Some("0::/jobs\n".to_owned())
        }
        "/proc/self/mountinfo" => Some(MOUNTS_2.to_owned()),
        _ => None,
    };
    let read_kept =
        |path: &Path| (path == Path::new("/sys/fs/cgroup/jobs/cpu.stat")).then(|| "throttled_usec 1".into());
    let throttling = Throttling::default();
    let read_at = |now_ns| (throttling.read_by(now_ns, &read, &read_kept).total_ns, *asked.lock().unwrap());
    assert_eq!(read_at(5), (1_000, 1));
    assert_eq!(read_at(5 + MEMBERSHIP_AGE_MAX_NS - 1), (1_000, 1));
    assert_eq!(read_at(5 + MEMBERSHIP_AGE_MAX_NS), (1_000, 2));
    assert_eq!(read_at(5 + 2 * MEMBERSHIP_AGE_MAX_NS - 1), (1_000, 2));
}

#[test]
fn throttled_time_of_version_1_is_in_nanoseconds() {
    let read = files(&[
        ("/proc/thread-self/cgroup", "1:cpu:/a\n"),
        ("/proc/self/mountinfo", MOUNTS_1),
        ("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_throttled 3\nthrottled_time 7\n"),
    ]);
    assert_eq!(
        Throttling::default().read_by(0, &read, &read).since(&Throttled::default()),
        0,
        "other groups"
    );
    assert_eq!(Throttling::default().read_by(0, &read, &read).total_ns, 7);
}

#[test]
fn memory_is_what_the_host_and_every_level_leave() {
    let all = |limit| {
        let contents = [
            ("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    3000 kB\n"),
            ("/proc/self/cgroup", "3:memory:/m/n\n"),
            ("/proc/self/mountinfo", MOUNTS_1),
            ("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", limit),
            ("/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "1600\n"),
            ("/sys/fs/cgroup/memory/m/memory.stat", "inactive_file 9\ntotal_inactive_file 600\n"),
        ];
        memory(None, &files(&contents))
    };
    assert_eq!(all("5000\n"), Some(4000));
    assert_eq!(all("9223372036854771712\n"), Some(3000 * 1024));
    let unified = files(&[
        ("/proc/self/cgroup", "0::/m\n"),
        ("/proc/self/mountinfo", MOUNTS_2),
        ("/sys/fs/cgroup/m/memory.max", "7000\n"),
        ("/sys/fs/cgroup/m/memory.current", "8000\n"),
    ]);
    assert_eq!(memory(None, &unified), Some(0), "more may be used than a limit that was lowered allows");
    assert_eq!(memory(None, &|_| None), None);
    let status = files(&[("/proc/self/status", "VmPeak:\t    9 kB\nVmSize:\t    3 kB\n")]);
    assert_eq!([10_000, 2_000].map(|limit| memory(Some(limit), &status)), [Some(10_000 - 3 * 1024), Some(0)]);
}
