//! Tests the formats on small traces, and on the public traces where `shared/data` has them.
#![expect(clippy::float_cmp, reason = "the shares are exact")]

use std::path::{Path, PathBuf};

use super::*;

fn parts(text: &str, step_s: Option<f64>) -> Vec<Series> {
    parse(text, step_s).unwrap().parts
}

#[test]
fn others_take_turns_where_their_use_was_measured() {
    let turns = |text| parse(text, None).unwrap().time_sliced;
    assert!(turns("time_s,host,share\n0,a,1\n") && turns("a,0,50\n"));
    assert!(!turns("vm,value\n0,5\n") && !turns("starttime,value\n2024-02-28 23:00:00.0,4\n"));
}

fn at(series: &Series, seconds: u64) -> f64 {
    series.at(seconds * 1_000_000_000).0
}

#[test]
fn each_format_is_known_by_its_first_line() {
    let hosts = parts("time_s,host,share\n0,a,1\n0,b,0.8\n60,a,0.5\n", None);
    assert_eq!(hosts, [Series::constant(1.0).then(60.0, 0.5), Series::constant(0.8)]);
    let hosts = parts("starttime,value\n2024-02-28 23:00:00.0,4\n2024-03-01 01:00:00.5,2\n", None);
    assert_eq!(hosts, [Series::constant(1.0).then(93_600.5, 0.5)], "a leap day lies between");
    let hosts = parts("vm,value\n0,5\n1,10\n2,20\n", None);
    assert_eq!(hosts.iter().map(|host| at(host, 0)).collect::<Vec<_>>(), [0.5, 1.0, 2.0]);
    let hosts = parts("\u{feff}vm , value\r\n\r\n\"0,b\",5\r\n1,10", None);
    assert_eq!(
        hosts.iter().map(|host| at(host, 0)).collect::<Vec<_>>(),
        [0.5, 1.0],
        "blanks, CRLF and quotes"
    );
    let hosts = parts("a host_x,0,50,99\n", None);
    assert_eq!([0, 299, 300, 600].map(|seconds| at(&hosts[0], seconds)), [1.0, 1.0, 0.5, 0.05]);
}

#[test]
fn machines_of_google_sum_their_tasks_in_windows() {
    let row = |window: u64, machine: u32, rate: f64| {
        let (start, end) = (window * 300_000_000, (window + 1) * 300_000_000);
        format!("{start},{end},77,0,{machine},{rate},0,0,0,0,0,0,0,0,0,1,0,1,0,0\n")
    };
    let text = [row(2, 5, 0.1), row(2, 5, 0.15), row(2, 9, 0.75), row(4, 5, 0.05)].concat();
    let hosts = parse(&text, None).unwrap();
    assert!(hosts.time_sliced);
    let shares = |host: usize| {
        [0, 299, 300, 600, 900].map(|seconds| (at(&hosts.parts[host], seconds) * 100.0).round())
    };
    assert_eq!(shares(0), [50.0, 50.0, 100.0, 90.0, 90.0], "of a machine of size 0.5, idle in between");
    assert_eq!(shares(1), [25.0; 5], "of a machine of size 1");
    let header = "machine_id,start_time,end_time,cpu_rate\n5,0,150000000,0.5\n";
    assert_eq!(at(&parse(header, None).unwrap().parts[0], 0), 0.5, "half of the window");
    for (text, line, words) in [
        ("machine_id,start_time,end_time,cpu_rate\n5,9,1,0.5\n", 2, "from 9 to 1 us, expected ascending"),
        (
            "machine_id,start_time,end_time,cpu_rate\n5,0,1e14,0.5\n",
            2,
            "expected ascending times of one window",
        ),
        ("machine_id,start_time,end_time,cpu_rate\n5,0\n", 2, "2 fields, expected 4 at least"),
        ("machine_id,start_time,cpu_rate\n5,0,1\n", 1, "the header \"machine_id,start_time,cpu_rate\""),
    ] {
        let (at, what) = parse(text, None).expect_err(text);
        assert!(at == line && what.contains(words), "{text:?}: {at}: {what}");
    }
}

#[test]
fn samples_can_follow_each_other_faster_than_they_did() {
    let hosts = parts("starttime,value\n2023-05-28 23:00:00,4\n2023-05-29 23:00:00,2\n", Some(10.0));
    assert_eq!(hosts, [Series::constant(1.0).then(10.0, 0.5)]);
}

#[test]
fn a_damaged_line_is_named() {
    for (text, line, words) in [
        ("time_s,host,share\n0,a\n", 2, "2 fields, expected 3"),
        ("time_s,host,share\n0,a,1\n0,a,1\n", 3, "ascending times"),
        ("time_s,host,share\n0,a,-1\n", 2, "\"-1\", expected a number from 0 to 10"),
        ("starttime,value\nyesterday,1\n", 2, "expected a time as"),
        ("vm,value\n\n1,NaN\n", 3, "\"NaN\", expected a number"),
        ("host,10,120\n", 1, "\"120\", expected a number from 0 to 100"),
        ("time,host\n", 1, "the header \"time,host\", expected `time_s,host,share`, `timestamp,value`"),
        ("vm,value\r\n\r\n  \r\n1,2\r\n2,x", 5, "\"x\", expected a number"),
        ("starttime,value\n2024-02-28 23:00:00,1\n2024-02-28 22:00:00,1\n", 3, "before the first line"),
        ("starttime,value\n2024-02-28 23:00:00,1\n2023-02-29 00:00:00,1\n", 3, "\"2023-02-29 00"),
        (
            &format!("vm,value\n1,\"{}\n", "long ".repeat(99)),
            2,
            "\"long long long long long long long long \"...",
        ),
    ] {
        let (at, what) = parse(text, None).unwrap_err();
        assert_eq!(at, line, "{text:?}");
        assert!(what.contains(words), "{text:?}: {what}");
    }
    assert_eq!(parts("", None), []);
}

#[test]
fn use_of_one_server_takes_turns_and_a_gap_is_told() {
    let text = "timestamp,value\n2014-04-10 00:04:00,90\n2014-04-10 00:09:00,50\n2014-04-10 00:19:00,100\n\
                2014-04-10 00:24:00,0\n";
    let hosts = parse(text, None).unwrap();
    assert!(hosts.time_sliced);
    let shares = [0, 300, 899, 900, 1200].map(|seconds| (at(&hosts.parts[0], seconds) * 100.0).round());
    assert_eq!(shares, [10.0, 50.0, 50.0, 5.0, 100.0], "the sample before holds over the gap");
    let gap = "1 of 3 steps are longer than 1.5 times the median of 300 s, the longest 600 s; the sample before holds";
    assert_eq!(hosts.notes, [gap]);
    let hosts = parse(text, Some(60.0)).unwrap();
    assert_eq!((at(&hosts.parts[0], 120), hosts.notes.len()), (0.05, 0), "times are replaced");
    let (line, what) = parse("timestamp,value\n2014-04-10 00:04:00,101\n", None).unwrap_err();
    assert_eq!((line, what.as_str()), (2, "\"101\", expected a number from 0 to 100"));
}

#[test]
fn what_contradicts_itself_is_refused() {
    for (text, line, words) in [
        ("vm,value\n1,5\n1,6\n", 3, "the host \"1\" is there twice, expected once"),
        ("a,5,6\nb,1,2\na,7,8\n", 3, "the host \"a\" is there twice, expected once"),
        ("vm,value\n1,0\n2,0\n3,9\n", 2, "the median of the values from here on is 0"),
        (
            "starttime,value\n2024-02-28 23:00:00,1\n2024-02-28 23:05:00,1\n2024-02-28 23:01:00,1\n",
            4,
            "60 s is not after the host's last line",
        ),
        ("starttime,value\n1971-01-01 00:00:00,1\n2971-01-01 00:00:00,1\n", 3, "expected 1e10 s at most"),
        ("starttime,value,vm\n2024-02-28 23:00:00,1,2\n", 1, "the header \"starttime,value,vm\", expected"),
        ("timestamp,value\n2024-02-28 23:00:00,1,2\n", 2, "has 3 fields, expected 2"),
    ] {
        let (at, what) = parse(text, None).expect_err(text);
        assert!(at == line && what.contains(words), "{text:?}: {at}: {what}");
    }
}

#[test]
fn rows_that_end_early_are_told() {
    let hosts = parse("a,1,2,3\nb,1,2\n", None).unwrap();
    assert_eq!(
        hosts.notes,
        ["1 of 2 hosts have fewer than 3 samples, the first in line 2; their last sample holds"]
    );
}

#[test]
fn ranks_without_a_host_of_their_own_are_told() {
    let hosts = |count| Hosts { parts: vec![Series::constant(1.0); count], ..Hosts::default() };
    let option = "--hosts-trace: ";
    assert_eq!(hosts(2).shared(2, "rank", option), None);
    let one = "--hosts-trace: 1 host for 4 ranks, all of which follow its series; name more files";
    assert_eq!(hosts(1).shared(4, "rank", option).as_deref(), Some(one));
    let three = "--hosts-trace: 3 hosts for 4 ranks: rank 3 follows the series of rank 0, and so on";
    assert_eq!(hosts(3).shared(4, "rank", option).as_deref(), Some(three));
}

/// A public trace in `shared/data`. Where there is none, prints a line.
fn public(name: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(name);
    if file.exists() {
        return Some(file);
    }
    println!("skip: ../shared/data/{name} not found");
    None
}

#[test]
fn the_public_traces_can_be_read() {
    for (name, count, notes) in [
        ("azure-vm-noise/mlc-triad-bandwidth_B8ms_long-vm2.csv", 1, 1),
        ("azure-vm-noise/mlc-triad-bandwidth_B8ms_short.csv", 11_816, 0),
        ("azure-vm-noise/mlc-triad-bandwidth_D8s_v5_long-vm1.csv", 1, 1),
        ("azure-vm-noise/mlc-triad-bandwidth_D8s_v5_short.csv", 11_861, 0),
        ("azure-vm-noise/stressng-cpu-cache_B8ms_long-vm2.csv", 1, 1),
        ("azure-vm-noise/stressng-cpu-cache_B8ms_short.csv", 11_811, 0),
        ("azure-vm-noise/stressng-cpu-cache_D8s_v5_long-vm1.csv", 1, 1),
        ("azure-vm-noise/stressng-cpu-cache_D8s_v5_short.csv", 11_867, 0),
        ("azure-vm-noise/sysbench-cpu_B8ms_long-vm2.csv", 1, 1),
        ("azure-vm-noise/sysbench-cpu_B8ms_short.csv", 11_821, 0),
        ("azure-vm-noise/sysbench-cpu_D8s_v5_long-vm1.csv", 1, 1),
        ("azure-vm-noise/sysbench-cpu_D8s_v5_short.csv", 11_862, 0),
        ("nab/ec2_cpu_utilization_24ae8d.csv", 1, 0),
        ("nab/ec2_cpu_utilization_53ea38.csv", 1, 0),
        ("nab/ec2_cpu_utilization_5f5533.csv", 1, 0),
        ("nab/ec2_cpu_utilization_825cc2.csv", 1, 1),
        ("nab/ec2_cpu_utilization_c6585a.csv", 1, 0),
        ("nab/ec2_cpu_utilization_fe7f93.csv", 1, 0),
        ("planetlab/20110303.csv", 1052, 0),
        ("planetlab/20110403.csv", 1463, 0),
        ("planetlab/20110420.csv", 1033, 0),
    ] {
        let Some(file) = public(name) else { continue };
        let hosts = read(&[file], None, None).unwrap();
        assert_eq!((hosts.parts.len(), hosts.notes.len()), (count, notes), "{name}: {:?}", hosts.notes);
        let shares: Vec<f64> = hosts.parts.iter().map(|host| at(host, 0)).collect();
        assert!(shares.iter().all(|&share| share > 0.0 && share < 10.0), "{name}");
        // One series is not given to several ranks without a word, and several ranks have series of their own.
        assert_eq!(hosts.shared(2, "rank", "").is_some(), count == 1, "{name}");
        assert!(count == 1 || hosts.parts[0] != hosts.parts[1], "{name}");
    }
}

#[test]
fn each_rank_follows_the_public_server_of_its_own_file() {
    let names = ["24ae8d", "53ea38", "5f5533", "825cc2", "c6585a", "fe7f93"];
    let files = names.map(|name| public(&format!("nab/ec2_cpu_utilization_{name}.csv")));
    let Some(files) = files.into_iter().collect::<Option<Vec<PathBuf>>>() else { return };
    let hosts = read(&files, None, None).unwrap();
    assert_eq!((hosts.parts.len(), hosts.shared(6, "rank", "")), (6, None));
    let shares = virtual_cluster::on_hosts(&[1; 6], &hosts.parts);
    // The means of the six files in percent; the third and the fourth server are busy.
    for (rank, percent) in [0.13, 1.8, 43.1, 89.8, 0.09, 5.8].into_iter().enumerate() {
        let series = shares.of(virtual_cluster::Worker { rank: lb_strategies::Rank(rank as u32), number: 0 });
        let sum: f64 = (0..4032).map(|sample| at(series, 300 * sample)).sum();
        let used = 100.0 * (1.0 - sum / 4032.0);
        assert!((used - percent).abs() < 0.2, "rank {rank}: {used} % in use, not {percent}");
    }
}
