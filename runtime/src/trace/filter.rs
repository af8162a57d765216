//! The filter that selects the events of a trace: `CARIBOU_TRACE_FILTER`.

use std::fmt;
use std::str::FromStr;

/// Selects the events that a trace keeps. The profile, samples and records of syncs are always kept.
///
/// A filter is a list of words. A word selects a class of events:
/// `handlers`, `messages` (sends; with `messages=16` one of 16, chosen by a hash of its name), `idle`, `runtime`,
/// `chunks` (arrivals, departures, loads, contributions), `marks` (with spans and counters), `iterations` (of pools),
/// `all`, `none`. If no class is selected, all are. A minus before a class excludes it. `array=NAME` keeps only events
/// of chunks of the named arrays.
///
/// ```
/// use caribou::trace::Filter;
/// let filter: Filter = "messages=16,-idle".parse()?;
/// assert_eq!(filter.to_string(), "handlers,messages=16,runtime,chunks,marks,iterations");
/// assert!("hanlders".parse::<Filter>().unwrap_err().contains("handlers"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    kept: [bool; Class::ALL.len()],
    /// One message of this number is kept.
    arrows: u32,
    /// Names of the arrays whose events are kept; empty for all arrays.
    arrays: Vec<String>,
}

/// Events that are kept or left out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Handlers,
    Messages,
    Idle,
    Runtime,
    Chunks,
    Marks,
    Iterations,
}

impl Class {
    const ALL: [Class; 7] = [
        Class::Handlers,
        Class::Messages,
        Class::Idle,
        Class::Runtime,
        Class::Chunks,
        Class::Marks,
        Class::Iterations,
    ];
    const NAMES: [&'static str; 7] =
        ["handlers", "messages", "idle", "runtime", "chunks", "marks", "iterations"];
}

impl Default for Filter {
    fn default() -> Filter {
        Filter { kept: [true; Class::ALL.len()], arrows: 1, arrays: Vec::new() }
    }
}

impl Filter {
    /// True if events of this class are kept.
    pub(crate) fn keeps(&self, class: Class) -> bool {
        self.kept[class as usize]
    }

    /// True if any event is kept.
    pub(crate) fn keeps_any(&self) -> bool {
        self.kept.contains(&true)
    }

    /// Of each chunk, one of this number of sends is kept; 0 if no sends are kept.
    pub(crate) fn arrows(&self) -> u32 {
        if self.keeps(Class::Messages) { self.arrows } else { 0 }
    }

    /// True if events of chunks of this array are kept.
    pub(crate) fn keeps_array(&self, name: &str) -> bool {
        self.arrays.is_empty() || self.arrays.iter().any(|array| array == name)
    }

    /// A name of an array in the filter that no array has.
    pub(crate) fn unknown_array(&self, arrays: &[String]) -> Option<&str> {
        self.arrays.iter().find(|name| !arrays.contains(name)).map(String::as_str)
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let mut filter = Filter { kept: [false; Class::ALL.len()], ..Filter::default() };
        let (mut named, mut left_out) = (false, Vec::new());
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("array", name)) => filter.arrays.push(name.trim().into()),
                Some(("messages", every)) => {
                    let every = every.trim().parse().ok().filter(|&every| every > 0);
                    filter.kept[Class::Messages as usize] = true;
                    filter.arrows = every.ok_or_else(|| {
                        format!("`{word}`: expected messages=N, to record one of N messages")
                    })?;
                }
                Some(_) => return Err(unknown(word)),
                None if word == "all" => (named, filter.kept) = (true, [true; Class::ALL.len()]),
                None if word == "none" => named = true,
                None => match word.strip_prefix('-') {
                    Some(name) => left_out.push(class(name).ok_or_else(|| unknown(word))?),
                    None => {
                        let class = class(word).ok_or_else(|| unknown(word))?;
                        (named, filter.kept[class as usize]) = (true, true);
                    }
                },
            }
        }
        if !named {
            filter.kept = [true; Class::ALL.len()];
        }
        left_out.into_iter().for_each(|class| filter.kept[class as usize] = false);
        Ok(filter)
    }
}

fn class(word: &str) -> Option<Class> {
    let found = Class::NAMES.iter().position(|&name| name == word);
    found.map(|position| Class::ALL[position])
}

fn unknown(word: &str) -> String {
    format!("`{word}` is none of {}, all, none, messages=N, array=NAME", Class::NAMES.join(", "))
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        for (class, name) in Class::ALL.into_iter().zip(Class::NAMES).filter(|&(class, _)| self.keeps(class))
        {
            match class {
                Class::Messages if self.arrows > 1 => words.push(format!("messages={}", self.arrows)),
                _ => words.push(name.into()),
            }
        }
        if words.is_empty() {
            words.push("none".into());
        } else if words.len() == Class::ALL.len() && self.arrows == 1 {
            words = vec!["all".into()];
        }
        words.extend(self.arrays.iter().map(|array| format!("array={array}")));
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_filter_says_of_itself_is_the_filter() {
        for (text, said) in [
            ("", "all"),
            ("all", "all"),
            ("none", "none"),
            ("handlers, idle", "handlers,idle"),
            ("-messages", "handlers,idle,runtime,chunks,marks,iterations"),
            ("handlers,messages,messages=4,array=Block", "handlers,messages=4,array=Block"),
            ("array=A,array=B", "all,array=A,array=B"),
        ] {
            let filter: Filter = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(filter.to_string(), said, "{text}");
            assert_eq!(said.parse::<Filter>(), Ok(filter), "{said}");
        }
    }

    #[test]
    fn a_word_that_is_none_is_refused() {
        for text in ["handler", "messages=0", "messages=often", "arrays=A", "-nothing"] {
            let said = text.parse::<Filter>().expect_err(text);
            assert!(said.starts_with(&format!("`{text}`")), "{said}");
        }
    }
}
