//! Lists the processes that used the vCPUs of ranks that lost time, as far as the ranks observed any.

use std::collections::BTreeMap;

use trace_reader::{RankTrace, Trace};

use super::page::{Cell, Table};

/// Ranks with a sentence, and processes named in it.
const RANKS_SAID: usize = 4;
const PROCESSES_SAID: usize = 3;
/// Name of the process that the programs of this project start for `--neighbour`.
const NEIGHBOUR: &str = "busy-neighbour";
/// Processes per rank in the table.
const PROCESSES_MAX: usize = 10;
/// Smallest share that is displayed as more than 0.0 %.
const SHOWN: f64 = 0.0005;
/// Fraction of lost time above which a quota explains the loss. The sentence then omits that no process was seen.
const NEARLY_ALL: f64 = 0.9;

/// The vCPU time that a rank lost, and the processes that used it. Shares are of the time of its workers.
struct RankContention<'t> {
    rank: u32,
    lost: f64,
    /// Upper limit of the loss by a quota: throttled time of the control group, at most the rank's waiting time.
    throttled: f64,
    /// Name, pid and share of each process, the largest share first.
    takers: Vec<(&'t str, u32, f64)>,
}

/// The ranks that observed other processes, the largest loss first.
fn losses(trace: &Trace) -> Vec<RankContention<'_>> {
    let elapsed_ns = trace.elapsed_ns();
    let ranks = trace.ranks.iter().filter(|rank| !rank.looks.is_empty());
    let mut losses: Vec<RankContention<'_>> = ranks.map(|rank| loss(rank, elapsed_ns)).collect();
    losses.sort_by(|one, other| other.lost.total_cmp(&one.lost).then(one.rank.cmp(&other.rank)));
    losses
}

fn loss(rank: &RankTrace, elapsed_ns: u64) -> RankContention<'_> {
    let all_ns = (elapsed_ns as f64 * f64::from(rank.workers)).max(1.0);
    let lost_ns: f64 = rank.samples.iter().map(|sample| sample.wait_ns as f64 + sample.steal_ns as f64).sum();
    let throttled_ns: f64 =
        rank.samples.iter().map(|sample| sample.throttled_ns.min(sample.wait_ns) as f64).sum();
    let mut by_process: BTreeMap<(&str, u32), f64> = BTreeMap::new();
    for look in &rank.looks {
        // All CPU time of a process counts for the vCPU where it ran last. Sums that exceed the time there are scaled.
        let seen_ns: f64 = look.takers.iter().map(|taker| taker.cpu_ns as f64).sum();
        let room_ns = look.over_ns as f64 * f64::from(rank.workers);
        let fits = if seen_ns > room_ns { room_ns / seen_ns } else { 1.0 };
        for taker in &look.takers {
            *by_process.entry((&taker.command, taker.pid)).or_default() += taker.cpu_ns as f64 * fits;
        }
    }
    let shares = by_process.into_iter().map(|((name, pid), ns)| (name, pid, ns / all_ns));
    let mut takers: Vec<(&str, u32, f64)> = shares.collect();
    takers.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.1.cmp(&other.1)));
    RankContention { rank: rank.rank, lost: lost_ns / all_ns, throttled: throttled_ns / all_ns, takers }
}

/// One sentence per rank that lost much time.
pub(crate) fn sentences(trace: &Trace) -> Vec<String> {
    losses(trace).iter().take(RANKS_SAID).map(|loss| sentence(loss, &trace.run.arguments)).collect()
}

fn sentence(loss: &RankContention<'_>, arguments: &[String]) -> String {
    let program = arguments.first().and_then(|program| program.rsplit('/').next()).unwrap_or("");
    let has_neighbour = arguments.iter().any(|argument| argument.starts_with("--neighbour"));
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    // The kernel keeps 15 bytes of a name.
    let called = |name: &str| match name {
        NEIGHBOUR if has_neighbour => "the neighbour that --neighbour started".to_owned(),
        _ if program.get(..15).unwrap_or(program) == name => format!("another process `{name}`"),
        _ => format!("`{name}`"),
    };
    let named =
        |(name, pid, share): &(&str, u32, f64)| format!("{} (pid {pid}) {}", called(name), percent(*share));
    let processes: Vec<String> = loss.takers.iter().take(PROCESSES_SAID).map(named).collect();
    let quota = match loss.throttled {
        throttled if throttled < SHOWN => String::new(),
        throttled => format!("; a quota throttled it for up to {}", percent(throttled)),
    };
    let seen = match processes.is_empty() {
        false => format!("; other processes seen on its vCPUs, also while it was idle, in % of the \
            run: {}", processes.join(", ")),
        true if loss.throttled >= NEARLY_ALL * loss.lost => String::new(),
        true => "; no process was seen on its vCPUs: this machine does not show the hypervisor, other containers and \
            processes that ended early"
            .into(),
    };
    let lost = percent(loss.lost);
    format!(
        "over the whole run, rank {} did not have its vCPU for {lost} of the time{quota}{seen}",
        loss.rank
    )
}

/// A table with one row per process; none if no rank observed any.
pub(crate) fn table(trace: &Trace) -> Option<Table> {
    let columns = [("rank", "rank"), ("process", "process"), ("pid", "pid"), ("share", "of the rank's time")];
    let mut table = Table::new("takers", "processes on the vCPUs of ranks that lost time", &columns);
    let losses = losses(trace);
    for loss in &losses {
        for &(name, pid, share) in loss.takers.iter().take(PROCESSES_MAX) {
            let who = [Cell::Count(loss.rank.into()), Cell::text_of(name), Cell::Count(pid.into())];
            table.row(who.into_iter().chain([Cell::Share(share)]));
        }
    }
    losses.iter().any(|loss| !loss.takers.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use caribou::trace::{End, Look, RunRecord, Sample, Taker, Writer};

    use super::NEIGHBOUR;
    use crate::tests::{Scratch, caribou};
    use crate::trace::tests::run_of;

    fn trace(scratch: &Scratch, takers: &[Taker]) {
        throttled_trace(scratch, takers, 0);
    }

    fn throttled_trace(scratch: &Scratch, takers: &[Taker], throttled_ns: u64) {
        for rank in 0..2 {
            let mut writer = Writer::create(scratch.path(), &run_of(2, rank)).unwrap();
            if rank == 1 {
                let sample =
                    Sample { at_ns: 500, wall_ns: 500, wait_ns: 450, throttled_ns, ..Sample::default() };
                writer.samples(&[sample]).unwrap();
                let look = Look { at_ns: 500, over_ns: 500, takers: takers.to_vec() };
                writer.looks(&[look.clone(), Look { at_ns: 900, ..look }]).unwrap();
            }
            writer.finish(&End { elapsed_ns: 1000, ..End::default() }).unwrap();
        }
    }

    #[test]
    fn no_more_than_all_of_the_time_is_lost_where_a_trace_was_cut_off() {
        let scratch = Scratch::new("takers-cut");
        let mut writer = Writer::create(scratch.path(), &run_of(1, 0)).unwrap();
        writer.samples(&[Sample { at_ns: 500, wall_ns: 500, wait_ns: 450, ..Sample::default() }]).unwrap();
        writer.looks(&[Look { at_ns: 500, over_ns: 500, takers: Vec::new() }]).unwrap();
        drop(writer);
        let text = caribou(&["trace", "summary", scratch.text()]).unwrap();
        assert!(text.contains("rank 0 did not have its vCPU for 90.0 % of the time"), "{text}");
    }

    fn taker(pid: u32, command: &str, cpu_ns: u64) -> Taker {
        Taker { pid, command: command.into(), cpu_ns }
    }

    #[test]
    fn a_competing_process_is_named_with_its_share() {
        let scratch = Scratch::new("takers");
        trace(&scratch, &[taker(9, "sshd", 5), taker(123, "stress", 200)]);
        let expected = "over the whole run, rank 1 did not have its vCPU for 45.0 % of the time; other processes seen \
            on its vCPUs, also while it was idle, in % of the run: `stress` (pid 123) 40.0 %, `sshd` (pid 9) 1.0 %";
        for command in ["summary", "lb"] {
            let text = caribou(&["trace", command, scratch.text()]).unwrap();
            assert!(text.lines().any(|line| line == expected), "{text}");
        }
        let file = scratch.join("report.html");
        caribou(&["trace", "report", scratch.text(), "-o", &file]).unwrap();
        let html = std::fs::read_to_string(file).unwrap();
        assert!(
            html.contains(
                "seen on its vCPUs, also while it was idle, in % of the run: <code>stress</code> (pid 123) 40.0 %"
            ) && html.contains("taker-table")
        );
    }

    #[test]
    fn processes_seen_together_had_no_more_than_the_vcpu() {
        let scratch = Scratch::new("takers-full");
        // Two observations of 500 ns each.
        trace(&scratch, &[taker(1, "ring", 450), taker(2, "rustc", 300), taker(3, "cc", 250)]);
        let text = caribou(&["trace", "summary", scratch.text()]).unwrap();
        assert!(
            text.contains("`ring` (pid 1) 45.0 %, `rustc` (pid 2) 30.0 %, `cc` (pid 3) 25.0 %"),
            "{text}"
        );
    }

    #[test]
    fn a_neighbour_is_told_from_the_program() {
        let says = |name: &str, arguments: &[&str], command: &str| {
            let arguments = arguments.iter().map(|argument| (*argument).into()).collect();
            let run = RunRecord { arguments, ..run_of(1, 0) };
            let scratch = Scratch::new(name);
            let mut writer = Writer::create(scratch.path(), &run).unwrap();
            let takers = vec![taker(7, command, 400)];
            writer.looks(&[Look { at_ns: 900, over_ns: 500, takers }]).unwrap();
            writer.finish(&End { elapsed_ns: 1000, ..End::default() }).unwrap();
            caribou(&["trace", "summary", scratch.text()]).unwrap()
        };
        let text = says("takers-same", &["/bin/stencil2d"], "stencil2d");
        assert!(text.contains("of the run: another process `stencil2d` (pid 7) 40.0 %"), "{text}");
        let text = says("takers-own", &["/bin/stencil2d", "--neighbour", "0"], NEIGHBOUR);
        assert!(text.contains("of the run: the neighbour that --neighbour started (pid 7) 40.0 %"), "{text}");
        let text = says("takers-demonstration", &["/bin/stencil2d"], NEIGHBOUR);
        assert!(text.contains("of the run: `busy-neighbour` (pid 7) 40.0 %"), "{text}");
    }

    #[test]
    fn a_vcpu_that_nobody_here_took_was_taken_elsewhere() {
        let scratch = Scratch::new("takers-nobody");
        trace(&scratch, &[]);
        let text = caribou(&["trace", "summary", scratch.text()]).unwrap();
        let expected = "rank 1 did not have its vCPU for 45.0 % of the time; no process was seen on its vCPUs: this \
            machine does not show the hypervisor, other containers";
        assert!(text.contains(expected) && text.contains("processes that ended early"), "{text}");
    }

    #[test]
    fn a_quota_that_throttled_a_rank_is_told() {
        let says = |name: &str, takers: &[Taker], throttled_ns| {
            let scratch = Scratch::new(name);
            throttled_trace(&scratch, takers, throttled_ns);
            let text = caribou(&["trace", "summary", scratch.text()]).unwrap();
            text.lines().find(|line| line.contains("rank 1 did")).unwrap_or_default().to_owned()
        };
        let lost = "over the whole run, rank 1 did not have its vCPU for 45.0 % of the time";
        let nearly_all = format!("{lost}; a quota throttled it for up to 42.0 %");
        assert_eq!(says("takers-quota", &[], 420), nearly_all);
        let beside = says("takers-quota-beside", &[taker(9, "sshd", 5)], 420);
        assert_eq!(
            beside,
            format!(
                "{nearly_all}; other processes seen on its vCPUs, also while it was idle, in % of the run: `sshd` (pid 9) \
                 1.0 %"
            )
        );
        let rest = format!(
            "{lost}; a quota throttled it for up to 30.0 %; no process was seen on its vCPUs: this machine"
        );
        let said = says("takers-quota-partly", &[], 300);
        assert!(said.starts_with(&rest), "{said}");
    }
}
