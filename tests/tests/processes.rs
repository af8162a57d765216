//! Ranks as processes: how a job ends when one of them is killed, stopped, wrong or gone, and how it shares MPI.

use std::process::Command;
use std::thread;
use std::time::Duration;

use caribou_tests::dynamic::{PROGRAMS, Program};
use caribou_tests::job::{Job, JobResult, launcher, resident_kib, side_by_side, signal};

/// A job of `processes` in a situation; none where there is no launcher.
fn situation(processes: u32, arguments: &[&str]) -> Option<Command> {
    let mut command = launcher(processes)?;
    command.arg(env!("CARGO_BIN_EXE_processes")).args(arguments);
    Some(command)
}

/// The same where `/dev/shm` has room for 2 MiB. None also where nobody may arrange that.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn situation_in_a_small_shm(processes: u32, arguments: &[&str]) -> Option<Command> {
    let job = situation(processes, arguments)?;
    let shell = |then: &str| {
        let script = format!("mount -t tmpfs -o size=2m tmpfs /dev/shm && {then}");
        let mut shell = Command::new("unshare");
        shell.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
        shell
    };
    if !shell("true").output().is_ok_and(|tried| tried.status.success()) {
        println!("skipped: /dev/shm cannot be replaced here");
        return None;
    }
    let mut command = shell("exec \"$@\"");
    command.arg(job.get_program()).args(job.get_args());
    command.envs(job.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(command)
}

fn run(processes: u32, arguments: &[&str]) -> Option<JobResult> {
    Some(Job::start(situation(processes, arguments)?).wait())
}

/// The same with a variable.
fn run_with(processes: u32, arguments: &[&str], (name, value): (&str, &str)) -> Option<JobResult> {
    let mut command = situation(processes, arguments)?;
    command.env(name, value);
    Some(Job::start(command).wait())
}

/// A launcher that kills the others at once, as MPICH's, says itself which process was lost.
fn by_launcher(ended: &JobResult) -> bool {
    ended.stderr.contains("BAD TERMINATION") || ended.stdout.join("\n").contains("BAD TERMINATION")
}

#[test]
fn a_killed_process_ends_the_others_within_seconds_and_is_named() {
    for victim in [0, 2] {
        let Some(command) = situation(3, &["rounds"]) else { return };
        let mut job = Job::start(command);
        let processes = job.processes(3);
        thread::sleep(Duration::from_millis(300));
        assert!(job.is_running());
        signal("KILL", processes[victim]);
        job.restart_clock();
        let ended = job.wait();
        assert!(!ended.status.success() && ended.took < Duration::from_secs(10), "{ended:?}");
        let named = format!("rank {victim} is gone: its process was killed, has crashed or has exited");
        assert!(ended.stderr.contains(&named) || by_launcher(&ended), "{ended:?}");
        for (rank, &process) in processes.iter().enumerate() {
            assert_eq!(resident_kib(process), 0, "rank {rank} has ended");
        }
    }
}

#[test]
fn a_handler_that_never_returns_does_not_keep_a_job_that_has_failed_from_ending() {
    let Some(ended) = run_with(2, &["hang"], ("CARIBOU_WATCHDOG", "1")) else { return };
    assert!(!ended.status.success() && ended.took < Duration::from_secs(30), "{ended:?}");
    let told = "rank 1, worker 0 has run Hangs[1] of array 0 in its handler of `start` for";
    for words in ["the first one falls", told, "stops waiting for ranks that do not answer (1)"] {
        assert!(ended.stderr.contains(words), "{words}: {ended:?}");
    }
}

#[test]
fn a_pool_whose_policy_is_silent_in_all_processes_is_told_of_by_rank_0() {
    let told = side_by_side(["mute", "endless", "leases"], |policy| {
        let mut command = situation(2, &["wait", policy])?;
        command.env("CARIBOU_WATCHDOG", "1");
        let ended = Job::start_alone(command).wait();
        assert!(ended.status.success(), "{policy}: {ended:?}");
        Some(ended.stderr)
    });
    let [Some(mute), Some(endless), Some(healthy)] = &told[..] else { return };
    let line = "rank 0, worker 0 has run nothing, because the policy `mute` assigns no work, for 1.";
    assert!(mute.contains(line) && !mute.contains("rank 1, worker 0"), "{mute}");
    let line = "rank 0, worker 0 has run nothing, because the policy `endless` does not end the pool, for 1.";
    assert!(endless.contains(line), "{endless}");
    // One process waits for the other, which takes its time: which of them has iteration 0 is a matter of luck.
    assert!(healthy.contains("worker 0 has run iterations from 0 on for"), "{healthy}");
    assert!(!healthy.contains("has run nothing, because"), "{healthy}");
}

#[test]
fn what_panics_when_it_is_dropped_at_the_end_of_a_run_is_an_error_of_all_processes() {
    for what in ["service", "policy"] {
        let Some(ended) = run(2, &["falls", what]) else { return };
        let said = "rank 1: it panicked outside of a handler: it falls";
        assert!(ended.stderr.contains(&format!("error: {said}")), "{what}: {ended:?}");
        // That of rank 0 panics as well where it is the policy's.
        let errors = ended.stderr.matches("it panicked outside of a handler: it falls").count();
        assert_eq!((ended.status.code(), errors), (Some(1), 2), "{what}: {ended:?}");
    }
}

#[test]
fn what_it_takes_to_decode_a_message_is_not_charged_to_its_chunk() {
    let Some(command) = situation(2, &["decode"]) else { return };
    let ended = Job::start_alone(command).wait();
    let said =
        ended.stdout.iter().find_map(|line| line.strip_prefix("handlers took ")?.strip_suffix(" percent"));
    let percent: u32 = said.and_then(|percent| percent.parse().ok()).unwrap_or_else(|| panic!("{ended:?}"));
    assert!(percent < 10, "handlers that do nothing took {percent} % of the time of decoding");
}

#[test]
fn a_stopped_process_holds_up_the_run_and_loses_nothing() {
    side_by_side(["on", "off"], |shared_memory| {
        let Some(mut command) = situation(2, &["flood", "100000", "512"]) else { return };
        command.env("CARIBOU_SHARED_MEMORY", shared_memory).env("CARIBOU_WATCHDOG", "1");
        let job = Job::start(command);
        let processes = job.processes(2);
        thread::sleep(Duration::from_millis(50));
        signal("STOP", processes[1]);
        job.line_with("the bystander went on");
        thread::sleep(Duration::from_millis(1000));
        let soon_kib = resident_kib(processes[0]);
        thread::sleep(Duration::from_millis(2000));
        let later_kib = resident_kib(processes[0]);
        signal("CONT", processes[1]);
        let ended = job.wait();
        assert!(ended.status.success(), "{ended:?}");
        assert!(ended.stdout.iter().any(|line| line == "all 100000 messages have come"), "{ended:?}");
        // 400 MB of messages are waiting to be sent; credit lets a few MB out, and the sender pauses.
        assert!(soon_kib > 0 && later_kib < soon_kib + 20_000, "from {soon_kib} to {later_kib} KiB");
        assert!(later_kib < 150_000, "{later_kib} KiB");
        // Somebody may wonder why nothing happens.
        let line = "rank 0 has run nothing, while other ranks work, wait or are stopped, for ";
        assert!(ended.stderr.contains(line), "{ended:?}");
    });
}

#[test]
fn a_stopped_process_is_named_whichever_it_is_and_goes_on_with_the_others() {
    for shape in ["arrays", "pool", "supersteps"] {
        side_by_side(0..3, |stopped: usize| {
            // Its errors are read while it runs.
            let Some(mut command) = launcher(3) else { return };
            let program =
                ["sh", "-c", "exec \"$@\" 2>&1", "sh", env!("CARGO_BIN_EXE_processes"), "paced", shape];
            command.args(program).env("CARIBOU_WATCHDOG", "1");
            let mut job = Job::start(command);
            let processes = job.processes(3);
            thread::sleep(Duration::from_millis(500));
            signal("STOP", processes[stopped]);
            let line = job.line_with(" has not answered rank ");
            let named = format!("rank {stopped} (process {} on host ", processes[stopped]);
            assert!(line.contains(&named), "{shape}, rank {stopped}: {line}");
            signal("CONT", processes[stopped]);
            job.line_with(&format!("rank {stopped} answers rank "));
            job.restart_clock();
            let ended = job.wait();
            assert!(ended.status.success(), "{shape}, rank {stopped}: {ended:?}");
            assert!(
                !ended.stdout.concat().contains("has not answered"),
                "{shape}, rank {stopped}: {ended:?}"
            );
        });
    }
}

#[test]
fn a_slow_process_holds_up_those_that_send_to_it() {
    side_by_side([("on", "1"), ("off", "2")], |(shared_memory, workers)| {
        // 20 MB of messages, which are made in no time and handled in half a second.
        let Some(mut command) = situation(2, &["flood", "20000", "128", "25"]) else { return };
        command.env("CARIBOU_MAIL_LIMIT", "1024").env("CARIBOU_WORKERS", workers);
        command.env("CARIBOU_SHARED_MEMORY", shared_memory);
        let ended = Job::start(command).wait();
        assert!(ended.status.success(), "{ended:?}");
        let said = |line: &String| line.strip_prefix("waited: ")?.parse::<u64>().ok();
        let waited = ended.stdout.iter().find_map(said).expect("it says how much has waited");
        // The limit, a window beside it, and what sixteen messages and two workers add to that.
        assert!((1..1_500_000).contains(&waited), "{waited} bytes have waited");
    });
}

#[test]
fn a_flow_one_way_does_not_wait_for_an_idle_receiver() {
    for stopped in [None, Some(0), Some(1)] {
        let Some(mut command) = situation(2, &["flood", "300", "131072"]) else { return };
        // With so little room Open MPI keeps back the words that free what was sent, until its receiver calls it again.
        command.env("OMPI_MCA_btl_vader_free_list_max", "8");
        let job = Job::start(command).limit(Duration::from_secs(30));
        let processes = job.processes(2);
        if let Some(rank) = stopped {
            thread::sleep(Duration::from_millis(50));
            signal("STOP", processes[rank]);
            thread::sleep(Duration::from_millis(200));
            signal("CONT", processes[rank]);
        }
        let ended = job.wait();
        assert!(ended.status.success(), "rank {stopped:?} is stopped for a while: {ended:?}");
        assert!(ended.stdout.iter().any(|line| line == "all 300 messages have come"), "{ended:?}");
    }
}

#[test]
fn long_messages_under_way_do_not_keep_a_run_from_ending() {
    for shared_memory in ["on", "off"] {
        let Some(mut command) = situation(3, &["hurry"]) else { return };
        command.env("CARIBOU_SHARED_MEMORY", shared_memory);
        let ended = Job::start(command).limit(Duration::from_secs(30)).wait();
        assert!(ended.status.success(), "shared memory {shared_memory}: {ended:?}");
    }
}

#[test]
fn a_small_dev_shm_is_large_enough() {
    let Some(mut command) = situation_in_a_small_shm(4, &["flood", "1000", "128"]) else { return };
    // MPICH's own needs are larger, unless it takes memory of System V, which has its room elsewhere.
    command.env("UCX_TLS", "sysv,self");
    let ended = Job::start(command).limit(Duration::from_secs(30)).wait();
    assert!(ended.status.success() && !ended.stderr.contains("cannot share memory"), "{ended:?}");
}

#[test]
fn without_shared_memory_messages_go_through_mpi_and_the_job_says_so_once() {
    let Some(mut command) = launcher(3) else { return };
    // A file that may not be so long is an error to the program then, and no signal.
    command.args(["sh", "-c", "trap '' XFSZ && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_processes"), "apart"]);
    let ended = Job::start(command).limit(Duration::from_secs(30)).wait();
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stdout.iter().any(|line| line == "all 1000 messages have come"), "{ended:?}");
    assert_eq!(ended.stderr.matches("3 processes cannot share memory").count(), 1, "{ended:?}");
}

#[test]
fn a_panic_is_the_error_of_every_process() {
    let Some(ended) = run(3, &["panic"]) else { return };
    assert!(!ended.status.success());
    let said = ended.stderr.matches("rank 2: chunk Panics[2] of array 0 panicked in its handler of `start`");
    assert!(said.count() >= 1, "{ended:?}");
}

#[test]
fn a_run_that_cannot_go_on_says_what_waits_in_every_process() {
    for shared_memory in ["on", "off"] {
        let Some(ended) = run_with(3, &["stall"], ("CARIBOU_SHARED_MEMORY", shared_memory)) else { return };
        assert!(!ended.status.success() && ended.took < Duration::from_secs(30), "{ended:?}");
        for chunk in 0..3 {
            let line = format!("Waits[{chunk}] of array 0 has 1 message for which it is not ready");
            assert!(ended.stderr.contains(&line), "{ended:?}");
        }
    }
}

#[test]
fn messages_that_reach_nobody_are_warned_of_once_by_the_first_process() {
    let Some(ended) = run(3, &["lose"]) else { return };
    let warning = "1 message was not delivered: 1 `message` to Loses[22] of array 0, which does not exist";
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stderr.matches(warning).count(), 1, "{ended:?}");
    assert_eq!(ended.stdout, [warning; 3], "every process has it in its report");
}

#[test]
fn a_process_that_ends_in_a_handler_is_missed_by_those_that_take_leave() {
    let Some(ended) = run(2, &["vanish"]) else { return };
    assert!(!ended.status.success() && ended.took < Duration::from_secs(15), "{ended:?}");
    assert!(ended.stderr.contains("rank 1 is gone"), "{ended:?}");
}

#[test]
fn a_message_that_panics_when_it_is_encoded_ends_the_run_on_both_sides() {
    for shared_memory in ["on", "off"] {
        let Some(ended) = run_with(2, &["unwritable"], ("CARIBOU_SHARED_MEMORY", shared_memory)) else {
            return;
        };
        assert!(!ended.status.success() && ended.took < Duration::from_secs(15), "{ended:?}");
        // What two processes say at once may stand in one line.
        let said = "rank 0: a message to Writes[1] of array 0 cannot cross the wire: `Unwritable` panicked when it was encoded: \
                    it cannot be written";
        assert_eq!(ended.stderr.matches(said).count(), 2, "{ended:?}");
    }
}

#[test]
fn a_process_that_leaves_early_is_missed() {
    let Some(ended) = run(2, &["leave"]) else { return };
    assert!(!ended.status.success(), "{ended:?}");
    assert!(ended.stderr.contains("rank 1 is gone"), "{ended:?}");
}

#[test]
fn processes_with_different_settings_do_not_begin() {
    let cases = [
        ("lb", "CARIBOU_LB: rank 1 has `greedy`, rank 0 `refine`: it must be the same in all processes"),
        ("period", "CARIBOU_LB_PERIOD: rank 1 has `7`, rank 0 `20`"),
        ("trace", "CARIBOU_TRACE: rank 1 has `traces`, rank 0 `no trace`"),
        ("own", "--seed: rank 1 has `2`, rank 0 `1`"),
        ("workers", "workers: 1 rank x 100000 workers are too many for one process"),
    ];
    side_by_side(cases, |(setting, said)| {
        let Some(ended) = run(2, &["differ", setting]) else { return };
        assert!(!ended.status.success());
        assert!(ended.stderr.contains(said), "{ended:?}");
    });
}

#[test]
fn a_process_that_waits_long_for_another_says_so() {
    let Some(command) = situation(2, &["absent"]) else { return };
    let ended = Job::start(command).limit(Duration::from_secs(30)).wait();
    assert!(!ended.status.success(), "{ended:?}");
    assert_eq!(ended.stderr.matches("still waiting for the other processes").count(), 1, "{ended:?}");
}

#[test]
fn a_process_that_refuses_to_take_part_ends_the_job() {
    for which in ["one", "all"] {
        let Some(command) = situation(3, &["refuse", which]) else { return };
        let ended = Job::start(command).limit(Duration::from_secs(30)).wait();
        assert_eq!(ended.status.code(), Some(3), "{which}: {ended:?}");
        assert_eq!(ended.stderr.matches("it has other plans").count(), 1, "{which}: {ended:?}");
    }
}

#[test]
fn a_program_lends_a_communicator_and_gets_it_back() {
    let Some(ended) = run(4, &["communicator"]) else { return };
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stdout.iter().filter(|line| line.starts_with("done on rank")).count(), 4);
}

#[test]
fn one_hosts_clocks_are_one() {
    let Some(ended) = run(2, &["clocks"]) else { return };
    let clocks: Vec<_> = ended.stdout.iter().filter(|line| line.starts_with("clock")).collect();
    assert_eq!(clocks, ["clock 0 0 0"; 2], "{ended:?}");
}

#[test]
fn a_pool_of_processes_gives_each_the_serial_result() {
    let cases = [(1, "on"), (2, "on"), (3, "on"), (1, "off"), (2, "off"), (3, "off")];
    side_by_side(cases, |(processes, shared_memory)| {
        let Some(ended) = run_with(processes, &["pools"], ("CARIBOU_SHARED_MEMORY", shared_memory)) else {
            return;
        };
        assert!(ended.status.success(), "{ended:?}");
        let agree = ended.stdout.iter().filter(|line| line.contains("all pools agree")).count();
        assert_eq!(agree as u32, processes, "{ended:?}");
    });
}

#[test]
fn programs_whose_chunks_come_and_go_have_the_serial_result_in_each_process() {
    let Some(ended) = run(2, &["dynamic"]) else { return };
    assert!(ended.status.success(), "{ended:?}");
    for Program { name, .. } in PROGRAMS {
        let agree = ended.stdout.iter().filter(|line| line.contains(&format!("{name} is as serial"))).count();
        assert_eq!(agree, 2, "{name}: {ended:?}");
    }
}

#[test]
fn a_killed_process_ends_a_pool_with_its_name() {
    let Some(command) = situation(2, &["labour"]) else { return };
    let mut job = Job::start(command);
    let processes = job.processes(2);
    signal("KILL", processes[1]);
    job.restart_clock();
    let ended = job.wait();
    assert!(ended.stderr.contains("rank 1 is gone") || by_launcher(&ended), "{ended:?}");
    assert!(!ended.status.success() && ended.took < Duration::from_secs(10), "{ended:?}");
}

#[test]
fn an_iteration_that_panics_is_the_error_of_every_process() {
    let Some(ended) = run(3, &["tired"]) else { return };
    let is_it = |line: &&str| {
        line.starts_with("error: rank ") && line.contains(" panicked while executing iterations")
    };
    let errors: Vec<&str> = ended.stderr.lines().filter(is_it).collect();
    assert!(errors.len() == 3 && errors.windows(2).all(|pair| pair[0] == pair[1]), "{ended:?}");
}

#[test]
fn processes_with_different_pools_do_not_begin() {
    let Some(ended) = run(2, &["unequal"]) else { return };
    assert_eq!(
        ended.stderr.matches("rank 1 runs a pool of 1001 iterations, rank 0 a pool of 1000").count(),
        2,
        "{ended:?}"
    );
}

#[test]
fn processes_with_different_programs_in_supersteps_do_not_begin() {
    let Some(ended) = run(2, &["unequal-steps"]) else { return };
    let said = "rank 1 runs a program in supersteps of 31 units, of total weight 31, rank 0 a program in supersteps of 30";
    assert_eq!(ended.stderr.matches(said).count(), 2, "{ended:?}");
}
