//! Finds the position of each vCPU in its machine: physical core, last-level cache, NUMA domain.
//!
//! | source | when |
//! |---|---|
//! | hwloc | with the feature `hwloc`, unless it fails |
//! | `/sys/devices/system` | on Linux |
//! | none | otherwise: all vCPUs count as separate cores with one cache |
//!
//! A core or a cache is named by its lowest online vCPU, and a NUMA domain by its number in the kernel. So names are
//! the same in all processes of a host, independent of their affinity masks and of the source.

use serde::{Deserialize, Serialize};

/// One vCPU and what it shares with others. Two vCPUs share a core, cache or domain if these fields are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Vcpu {
    /// The number in affinity masks.
    pub(crate) number: u32,
    /// The physical core, which hyperthread siblings share.
    pub(crate) core: u32,
    /// The cache of the highest level; the same for all vCPUs if no cache is known.
    pub(crate) cache: u32,
    /// The NUMA domain.
    pub(crate) numa: u32,
}

/// The positions of these vCPUs, in the same order. Takes 70 us per vCPU by `/sys`, and some milliseconds by hwloc.
pub(crate) fn layout(allowed: &[usize]) -> Vec<Vcpu> {
    #[cfg(feature = "hwloc")]
    match hwloc::layout(allowed) {
        Ok(vcpus) => return vcpus,
        Err(why) => tracing::warn!(%why, "hwloc cannot describe this machine: /sys is read instead"),
    }
    sys_layout(allowed, &read_sys).unwrap_or_else(|| flat(allowed))
}

/// A layout in which every vCPU is a separate core and all share one cache and one domain.
fn flat(allowed: &[usize]) -> Vec<Vcpu> {
    let alike = |&vcpu: &usize| Vcpu { number: vcpu as u32, core: vcpu as u32, cache: 0, numa: 0 };
    allowed.iter().map(alike).collect()
}

/// A file below `/sys/devices/system`, if it can be read.
fn read_sys(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("/sys/devices/system/{path}")).ok()
}

/// The layout from the files that `read` returns; none if they list no cores.
///
/// Many virtual machines report no caches, and kernels without NUMA report no domains. All vCPUs then share one.
fn sys_layout(allowed: &[usize], read: &dyn Fn(&str) -> Option<String>) -> Option<Vec<Vcpu>> {
    let domains = domains(read).unwrap_or_default();
    let vcpu = |&number: &usize| {
        let siblings = read(&format!("cpu/cpu{number}/topology/thread_siblings_list"))?;
        let number = number as u32;
        let domain = domains.iter().find(|(_, members)| members.iter().any(|range| range.contains(&number)));
        Some(Vcpu {
            number,
            core: lowest(&siblings)?,
            cache: last_cache(number, read).unwrap_or(0),
            numa: domain.map_or(0, |&(domain, _)| domain),
        })
    };
    allowed.iter().map(vcpu).collect()
}

type Ranges = Vec<std::ops::RangeInclusive<u32>>;

/// The NUMA domains with their vCPUs. Domains with memory only have no vCPUs.
fn domains(read: &dyn Fn(&str) -> Option<String>) -> Option<Vec<(u32, Ranges)>> {
    let online = parse_ranges(&read("node/online")?)?;
    let members = |domain| Some((domain, parse_ranges(&read(&format!("node/node{domain}/cpulist"))?)?));
    online.into_iter().flatten().map(members).collect()
}

/// The cache of the highest level of a vCPU, named by the lowest vCPU that shares it.
fn last_cache(vcpu: u32, read: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
    let level = |index: u32| {
        let level: u32 = read(&format!("cpu/cpu{vcpu}/cache/index{index}/level"))?.trim().parse().ok()?;
        Some((level, index))
    };
    let (_, index) = (0..).map_while(level).max()?;
    lowest(&read(&format!("cpu/cpu{vcpu}/cache/index{index}/shared_cpu_list"))?)
}

/// The lowest number of a list, which is the first, because the kernel's lists are ascending.
fn lowest(list: &str) -> Option<u32> {
    Some(*parse_ranges(list)?.first()?.start())
}

/// Parses a list of the kernel, such as `0-3,8`. An empty list has no ranges.
fn parse_ranges(list: &str) -> Option<Ranges> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter(|range| !range.is_empty()).map(range).collect()
}

#[cfg(feature = "hwloc")]
mod hwloc {
    use hwlocality::Topology;
    use hwlocality::object::TopologyObject;
    use hwlocality::object::types::ObjectType;
    use hwlocality::topology::builder::BuildFlags;

    use super::Vcpu;

    /// The layout by hwloc, or the reason why hwloc does not describe this machine.
    pub(super) fn layout(allowed: &[usize]) -> Result<Vec<Vcpu>, String> {
        // Includes vCPUs that a cgroup forbids, so that all processes name a core by the same vCPU.
        let builder = Topology::builder().with_flags(BuildFlags::INCLUDE_DISALLOWED);
        let topology = builder.map_err(|why| why.to_string())?.build().map_err(|why| why.to_string())?;
        if !topology.is_this_system() {
            return Err("a variable HWLOC_* describes another machine".into());
        }
        let vcpu = |&number: &usize| {
            let unit =
                topology.pu_with_os_index(number).ok_or(format!("hwloc does not list vCPU {number}"))?;
            Ok(vcpu(number as u32, unit))
        };
        allowed.iter().map(vcpu).collect()
    }

    fn vcpu(number: u32, unit: &TopologyObject) -> Vcpu {
        let cache = unit.ancestors().filter(|object| object.object_type().is_cpu_data_cache()).last();
        let domain = unit.nodeset().and_then(|domains| domains.first_set());
        Vcpu {
            number,
            core: unit.first_ancestor_with_type(ObjectType::Core).and_then(lowest).unwrap_or(number),
            cache: cache.and_then(lowest).unwrap_or(0),
            numa: domain.map_or(0, |domain| usize::from(domain) as u32),
        }
    }

    fn lowest(object: &TopologyObject) -> Option<u32> {
        Some(usize::from(object.cpuset()?.first_set()?) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two domains with one core and one cache each; vCPUs 2 and 3 are the second hyperthreads.
    fn two_domains(path: &str) -> Option<String> {
        let text = match path {
            "node/online" => "0-1\n",
            "node/node0/cpulist" => "0,2\n",
            "node/node1/cpulist" => "1,3\n",
            _ => {
                let (vcpu, file) = path.strip_prefix("cpu/cpu")?.split_once('/')?;
                let shared = if vcpu == "0" || vcpu == "2" { "0,2\n" } else { "1,3\n" };
                match file {
                    "cache/index0/level" => "1\n",
                    "cache/index1/level" => "3\n",
                    "cache/index0/shared_cpu_list" => return Some(format!("{vcpu}\n")),
                    "cache/index1/shared_cpu_list" | "topology/thread_siblings_list" => shared,
                    _ => return None,
                }
            }
        };
        Some(text.into())
    }

    #[test]
    fn names_do_not_depend_on_the_affinity_mask() {
        let all = sys_layout(&[0, 1, 2, 3], &two_domains).expect("the files are there");
        assert_eq!(all[3], Vcpu { number: 3, core: 1, cache: 1, numa: 1 });
        assert_eq!(sys_layout(&[2, 3], &two_domains).expect("the files are there"), all[2..]);
    }

    #[test]
    fn what_sys_does_not_tell_is_shared_by_all() {
        let cores_only = |path: &str| path.ends_with("thread_siblings_list").then(|| "4-5\n".to_owned());
        let vcpu = Vcpu { number: 5, core: 4, cache: 0, numa: 0 };
        assert_eq!(sys_layout(&[5], &cores_only), Some(vec![vcpu]));
        assert_eq!(sys_layout(&[5], &|_| None), None);
        assert_eq!(flat(&[5]), [Vcpu { core: 5, ..vcpu }]);
    }

    #[test]
    fn a_list_of_the_kernel_has_ranges_and_numbers() {
        assert_eq!(parse_ranges("0-3,8\n"), Some(vec![0..=3, 8..=8]));
        assert_eq!(parse_ranges("\n"), Some(Vec::new()));
        assert_eq!(parse_ranges("0-x"), None);
    }

    #[test]
    fn this_machine_has_a_layout_for_every_allowed_vcpu() {
        let allowed = super::super::allowed_vcpus();
        let numbers: Vec<usize> = layout(&allowed).iter().map(|vcpu| vcpu.number as usize).collect();
        assert_eq!(numbers, allowed);
    }

    #[test]
    #[cfg(feature = "hwloc")]
    fn hwloc_and_sys_agree_on_this_machine() {
        let allowed = super::super::allowed_vcpus();
        if let Some(by_sys) = sys_layout(&allowed, &read_sys) {
            assert_eq!(hwloc::layout(&allowed), Ok(by_sys));
        }
    }
}
