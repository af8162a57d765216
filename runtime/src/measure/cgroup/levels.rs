//! Finds the control groups of a process for one controller, up to the root, and reads the values in their files.

use std::path::{Component, Path, PathBuf};

use super::{Quota, Read};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// A group and all groups above it, innermost first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) version: Version,
    pub(super) folders: Vec<PathBuf>,
}

impl Levels {
    /// The levels of a process or thread, from its `/proc/.../cgroup` and `/proc/.../mountinfo`. None if the hierarchy
    /// of the controller is not mounted.
    ///
    /// A controller is in a hierarchy of version 1 if it has one, otherwise in that of version 2.
    pub(super) fn of(controller: &str, membership: &str, mountinfo: &str) -> Option<Levels> {
        let of_version = |version| {
            let group = membership.lines().find_map(|line| own_path(line, version, controller))?;
            let mount = mountinfo.lines().find_map(|line| Mount::parse(line, version, controller))?;
            Some(Levels { version, folders: mount.levels(Path::new(group)) })
        };
        of_version(Version::One).or_else(|| of_version(Version::Two))
    }

    /// The tightest quota of all levels.
    pub(super) fn quota(&self, read: Read<'_>) -> Option<Quota> {
        let file = |folder: &Path, name: &str| read(&folder.join(name));
        let of_level = |folder: &PathBuf| {
            let vcpus = match self.version {
                Version::One => {
                    ratio(&file(folder, "cpu.cfs_quota_us")?, &file(folder, "cpu.cfs_period_us")?)
                }
                Version::Two => parse_max(&file(folder, "cpu.max")?),
            };
            Some(Quota { vcpus: vcpus?, group: folder.display().to_string() })
        };
        self.folders.iter().filter_map(of_level).min_by(|one, other| one.vcpus.total_cmp(&other.vcpus))
    }

    /// Time for which quotas of all levels stopped threads, ns. Time throttled by two levels at once counts twice.
    pub(super) fn throttled_ns(&self, read: Read<'_>) -> u64 {
        let stats = self.folders.iter().filter_map(|folder| read(&folder.join("cpu.stat")));
        stats.filter_map(|stat| parse_throttled(&stat)).sum()
    }

    /// Bytes of memory that all levels still allow; none without a limit. Inactive pages of files do not count as used,
    /// because the kernel can drop them.
    pub(super) fn memory(&self, read: Read<'_>) -> Option<u64> {
        let (limit, usage, cached) = match self.version {
            Version::One => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            Version::Two => ("memory.max", "memory.current", "inactive_file"),
        };
        let bytes = |folder: &Path, name| read(&folder.join(name))?.trim().parse::<u64>().ok();
        let left = |folder: &PathBuf| {
            let cached = read(&folder.join("memory.stat")).and_then(|stat| value_of(cached, &stat));
            let used = bytes(folder, usage)?.saturating_sub(cached.unwrap_or(0));
            Some(bytes(folder, limit)?.saturating_sub(used))
        };
        self.folders.iter().filter_map(left).min()
    }
}

/// The group in a line `id:controllers:path` of `/proc/.../cgroup`, if the line is of the controller's hierarchy.
fn own_path<'l>(line: &'l str, version: Version, controller: &str) -> Option<&'l str> {
    let (id, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let is_it = match version {
        Version::One => controllers.split(',').any(|name| name == controller),
        Version::Two => id == "0" && controllers.is_empty(),
    };
    is_it.then_some(path)
}

/// The mount of a hierarchy.
struct Mount<'l> {
    /// The group at the root of the mount.
    root: &'l Path,
    point: &'l Path,
}

impl<'l> Mount<'l> {
    /// Parses a line `id parent device root point options [tags] - type source super-options` of the hierarchy.
    fn parse(line: &'l str, version: Version, controller: &str) -> Option<Mount<'l>> {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let is_it = match (version, kind.next()?, kind.nth(1)) {
            (Version::One, "cgroup", Some(options)) => options.split(',').any(|name| name == controller),
            (Version::Two, "cgroup2", _) => true,
            _ => false,
        };
        let mut place = place.split(' ').skip(3);
        is_it.then_some(Mount { root: Path::new(place.next()?), point: Path::new(place.next()?) })
    }

    /// The visible levels from `group` up. Only the root, if `group` is outside of it as seen from another namespace.
    fn levels(&self, group: &Path) -> Vec<PathBuf> {
        let inside = |path: &&Path| path.components().all(|part| part != Component::ParentDir);
        let below = group.strip_prefix(self.root).ok().filter(inside).unwrap_or(Path::new(""));
        // The last ancestor of a relative path is the empty path, which is the mount point.
        below.ancestors().map(|level| self.point.join(level)).collect()
    }
}

/// Parses `max 100000`, which is no quota, or `50000 100000`.
fn parse_max(max: &str) -> Option<f64> {
    let (quota_us, period_us) = max.split_once(' ')?;
    ratio(quota_us, period_us)
}

/// The quota in vCPUs: the allowed time over the period. `-1` is no quota.
fn ratio(quota_us: &str, period_us: &str) -> Option<f64> {
    let [quota_us, period_us] = [quota_us, period_us].map(|text| text.trim().parse::<u64>().ok());
    let (quota_us, period_us) = (quota_us?, period_us.filter(|&period_us| period_us > 0)?);
    (quota_us > 0).then(|| quota_us as f64 / period_us as f64)
}

fn parse_throttled(stat: &str) -> Option<u64> {
    value_of("throttled_time", stat).or_else(|| Some(value_of("throttled_usec", stat)? * 1000))
}

/// A number in a file of lines `name number`.
fn value_of(name: &str, stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}
