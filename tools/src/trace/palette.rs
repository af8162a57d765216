//! Defines the colours of all pictures of traces, each with one meaning. Colour-blind people can distinguish them
//! (Okabe and Ito). A pattern, a label or a hint also shows each meaning.

use std::collections::{BTreeMap, BTreeSet};

use caribou::trace::NameId;
use presentation::svg::Svg;
use trace_reader::Trace;

/// Idle time.
pub(crate) const IDLE: &str = "#f0f0f0";
/// Time in the runtime.
pub(crate) const RUNTIME: &str = "#4d4d4d";
/// Time in which another process had the vCPU. It is hatched.
pub(crate) const LOST: &str = "url(#lost)";
/// Lines of that hatching.
pub(crate) const LOST_LINE: &str = "#d55e00";
/// Time that the hypervisor took. It is hatched in the other direction.
pub(crate) const STEAL: &str = "url(#steal)";
/// Unaccounted time.
pub(crate) const UNKNOWN: &str = "#d9d9d9";
/// Chunks, where kinds of messages are not distinguished.
pub(crate) const CHUNKS: &str = "#0072b2";
/// Times of ranks at a sync: measured before it, predicted, and measured in the phase after it.
pub(crate) const BEFORE: &str = "#e69f00";
pub(crate) const PREDICTED: &str = "#56b4e9";
pub(crate) const MEASURED: &str = "#0072b2";
/// A line at a time such as a sync.
pub(crate) const MARK: &str = "#000000";

/// Okabe and Ito's colours without black (text) and vermilion (lost time), then lighter and darker versions.
pub(crate) const KINDS: [&str; 18] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442", "#7fb8d8", "#f2cf7f", "#7fceb9",
    "#e5bcd3", "#aad9f4", "#f7f1a0", "#00507d", "#a16f00", "#006e50", "#8e5475", "#3c7da3", "#a89f2e",
];

/// An empty picture with the hatched fills defined.
pub(crate) fn picture(width: f64, height: f64, title: &str) -> Svg {
    let mut svg = Svg::new(width, height, title);
    svg.hatch("lost", LOST_LINE, 45);
    svg.hatch("steal", "#a50026", -45);
    svg
}

/// Name of the iterations of a pool.
pub(crate) const ITERATIONS: &str = "iterations";

/// The colour of each message kind of a run by its name, and of iterations: the same in all pictures of the run.
pub(crate) fn kinds(trace: &Trace) -> BTreeMap<String, &'static str> {
    let kinds = trace.names.iter().zip(0..).filter(|(name, _)| name.array.is_some());
    let names = kinds.map(|(_, number)| trace.name(NameId(number)));
    colours(names.chain([ITERATIONS.into()]))
}

/// Assigns a colour to each name. A name has the same colour in every run, unless another name of the run has taken it.
fn colours(names: impl IntoIterator<Item = String>) -> BTreeMap<String, &'static str> {
    let mut taken = [false; KINDS.len()];
    let mut colours = BTreeMap::new();
    for name in names.into_iter().collect::<BTreeSet<String>>() {
        let first = hash(&name) as usize % 6;
        let places = (0..KINDS.len()).map(|step| (first + step) % KINDS.len());
        let place = places.into_iter().find(|&place| !taken[place]).unwrap_or(first);
        taken[place] = true;
        colours.insert(name, KINDS[place]);
    }
    colours
}

/// FNV-1a, which gives the same value on every machine and in every version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The colour of something that has a number and no name, such as a rank.
pub(crate) fn numbered(number: u64) -> &'static str {
    KINDS[(number % KINDS.len() as u64) as usize]
}

/// Mixes a colour with the fraction `part` of white.
pub(crate) fn lighter(colour: &str, part: f64) -> String {
    let channel = |place: usize| {
        let full = colour.get(place..place + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let full = f64::from(full.unwrap_or(0));
        (full + (255.0 - full) * part).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(1), channel(3), channel(5))
}

/// A colour between white (0), blue, and nearly black (1).
pub(crate) fn shade(part: f64) -> String {
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    let stops = [(247.0, 251.0, 255.0), (107.0, 174.0, 214.0), (8.0, 48.0, 107.0)];
    let (from, to, along) =
        if part < 0.5 { (stops[0], stops[1], 2.0 * part) } else { (stops[1], stops[2], 2.0 * part - 1.0) };
    let mix = |from: f64, to: f64| (from + (to - from) * along).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_colours_and_few_names_differ() {
        let few: Vec<String> = (0..18).map(|number| format!("kind {number}")).collect();
        let colours = colours(few.clone());
        assert_eq!(colours.values().collect::<BTreeSet<_>>().len(), 18);
        let alone = super::colours([few[0].clone()]);
        assert_eq!(alone[&few[0]], super::colours([few[0].clone(), "zzz".into()])[&few[0]]);
    }
}
