//! Parses `--neighbour RANK[.WORKER][:FROM-TO][:DUTY]` and `--neighbour RANK[.WORKER]:random:SEED`: a process that
//! competes for a worker's vCPU.

use super::description::{HostName, Neighbours};

const FORM: &str = "expected RANK[.WORKER][:FROM-TO][:DUTY] or RANK[.WORKER]:random:SEED, as in 1, 1.3:600-1200, 1:0.5 \
    or 1:random:7";

/// Parses a neighbour. Times are in seconds; the duty is above 0 and at most 1.
pub(super) fn parse(text: &str) -> Result<Neighbours, String> {
    let mut parts = text.split(':');
    let who = parts.next().unwrap_or_default();
    let (rank, worker) = match who.split_once('.') {
        Some((rank, worker)) => (rank, Some(number(worker)?)),
        None => (who, None),
    };
    let host = Some(vec![HostName::Number(number(rank)?)]);
    let mut neighbour = Neighbours { host, vcpu: worker, ..Neighbours::default() };
    let rest: Vec<&str> = parts.collect();
    match rest[..] {
        [] => {}
        ["random"] => return Err(FORM.to_owned()),
        ["random", seed] => neighbour.random = Some(parse_seed(seed)?),
        [one] if one.contains('-') => set_times(&mut neighbour, one)?,
        [one] => neighbour.duty = Some(duty(one)?),
        [times, last] => {
            set_times(&mut neighbour, times)?;
            neighbour.duty = Some(duty(last)?);
        }
        _ => return Err(FORM.to_owned()),
    }
    Ok(neighbour)
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number from 0; {FORM}"))
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a seed, expected a whole number from 0 to 2^64 - 1"))
}

fn set_times(neighbour: &mut Neighbours, text: &str) -> Result<(), String> {
    let times = text.split_once('-').and_then(|(from, to)| {
        let (from, to) = (from.parse::<f64>().ok()?, to.parse::<f64>().ok()?);
        (0.0 <= from && from < to && to <= 1e9).then_some((from, to))
    });
    let Some((from_s, to_s)) = times else {
        return Err(format!("{text:?} is not FROM-TO, expected two ascending numbers of seconds up to 1e9"));
    };
    [neighbour.from, neighbour.to] = [from_s, to_s].map(|seconds| Some((seconds * 1e9).round() as u64));
    Ok(())
}

/// The part of a vCPU that a process wants.
pub(super) fn duty(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|&number| number > 0.0 && number <= 1.0);
    number.ok_or_else(|| format!("{text:?} is not a duty, expected a number above 0 and up to 1"))
}
