//! Reads `.sts` and `.log` files for tests, and is stricter than the viewer. What makes the viewer crash, hang, draw
//! wrongly or truncate silently is an error here. It is written from the format, independently of the writer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;

/// The symbol table.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    version: f64,
    pub(super) processors: i64,
    totals: BTreeMap<String, i64>,
    chares: BTreeMap<i64, String>,
    pub(super) entries: BTreeMap<i64, String>,
    pub(super) events: BTreeMap<i64, String>,
    pub(super) statistics: BTreeMap<i64, String>,
}

/// An execution of an entry.
#[derive(Debug, PartialEq)]
pub(super) struct Slice {
    pub(super) entry: i64,
    pub(super) begin_us: i64,
    pub(super) end_us: i64,
    pub(super) event: i64,
    pub(super) source: i64,
    pub(super) bytes: i64,
    pub(super) ids: [i64; 4],
}

/// The contents of a row.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) slices: Vec<Slice>,
    pub(super) idle: Vec<(i64, i64)>,
    /// Event numbers of sends.
    pub(super) sent: BTreeSet<i64>,
    pub(super) spans: Vec<(i64, i64, i64)>,
    pub(super) marks: Vec<(i64, i64)>,
    pub(super) notes: Vec<String>,
    /// Phase or -1, value, and number of the statistic.
    pub(super) statistics: Vec<(f64, f64, i64)>,
    pub(super) end_us: i64,
}

/// A whole export.
#[derive(Debug)]
pub(super) struct Export {
    pub(super) symbols: Symbols,
    pub(super) rows: BTreeMap<i64, Row>,
}

/// Reads a directory that contains one export.
pub(super) fn read_export(dir: &Path) -> Result<Export, String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .map_err(|error| error.to_string())?
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let sts = names.iter().filter(|name| name.ends_with(".sts")).collect::<Vec<_>>();
    let [sts] = sts[..] else { return Err(format!("{} symbol tables", sts.len())) };
    let base = sts.strip_suffix(".sts").unwrap();
    if base.contains('.') {
        return Err(format!("the base name {base} has a dot"));
    }
    let symbols = read_symbols(&fs::read_to_string(dir.join(sts)).map_err(|error| error.to_string())?)?;
    let mut rows = BTreeMap::new();
    let (sums, logs): (Vec<&String>, Vec<&String>) =
        names.iter().filter(|name| *name != sts).partition(|name| name.ends_with(".sum"));
    for name in logs {
        let middle = name.strip_prefix(base).and_then(|rest| rest.strip_prefix('.'));
        let number = middle.and_then(|rest| rest.strip_suffix(".log").or(rest.strip_suffix(".log.gz")));
        let number = number.and_then(|number| number.parse().ok());
        let number: i64 = number.ok_or_else(|| format!("a stray file {name}"))?;
        let mut bytes = fs::read(dir.join(name)).map_err(|error| error.to_string())?;
        if name.ends_with(".gz") {
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).map_err(|e| e.to_string())?;
            bytes = unpacked;
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("{name}: no text"))?;
        let row = read_log(&text, &symbols, number).map_err(|why| format!("{name}: {why}"))?;
        rows.insert(number, row);
    }
    let expected: Vec<String> = rows.keys().map(|row| format!("{base}.{row}.sum")).collect();
    // Older exports have no sums.
    let complete = sums.len() == expected.len() && expected.iter().all(|name| sums.contains(&name));
    if !sums.is_empty() && !complete {
        return Err(format!("sums {sums:?} of rows {:?}", rows.keys()));
    }
    let export = Export { symbols, rows };
    export.check()?;
    Ok(export)
}

impl Export {
    /// Checks relations between rows.
    fn check(&self) -> Result<(), String> {
        let ends: BTreeSet<i64> = self.rows.values().map(|row| row.end_us).collect();
        if ends.len() > 1 {
            return Err(format!("rows end at different times: {ends:?}"));
        }
        for (number, row) in &self.rows {
            let lost = row.slices.iter().find(|slice| {
                let sender = self.rows.get(&slice.source);
                slice.source != *number && !sender.is_some_and(|sender| sender.sent.contains(&slice.event))
            });
            if let Some(slice) = lost {
                return Err(format!("nobody sent event {} of row {}", slice.event, slice.source));
            }
        }
        Ok(())
    }

    /// Time in an entry in us and number of calls, over the rows for which `of` is true.
    pub(super) fn total_us(&self, entry: &str, of: impl Fn(i64) -> bool) -> (i64, i64) {
        let slices = self.rows.iter().filter(|(number, _)| of(**number)).flat_map(|(_, row)| &row.slices);
        let named = slices.filter(|slice| self.symbols.entries[&slice.entry] == entry);
        named.fold((0, 0), |(us, calls), slice| (us + slice.end_us - slice.begin_us, calls + 1))
    }
}

fn whole(token: Option<&str>) -> Result<i64, String> {
    let token = token.ok_or("a number is missing")?;
    token.parse().map_err(|_| format!("`{token}` is no whole number"))
}

fn small(token: Option<&str>) -> Result<i64, String> {
    match whole(token)? {
        number if i32::try_from(number).is_ok() => Ok(number),
        number => Err(format!("{number} is cut to 32 bits")),
    }
}

/// The text between quotes, and the text after it. The quoted text ends at the first word that ends with a quote.
fn in_quotes(text: &str) -> Result<(String, &str), String> {
    let rest = text.strip_prefix('"').ok_or_else(|| format!("`{text}` is not quoted"))?;
    let end = rest.find('"').ok_or_else(|| format!("the quote in `{text}` has no end"))?;
    let (inner, after) = (&rest[..end], &rest[end + 1..]);
    if !after.is_empty() && !after.starts_with(' ') {
        return Err(format!("a quote inside of `{text}`"));
    }
    if inner.contains("  ") || !inner.is_ascii() {
        return Err(format!("`{inner}` is not read as written"));
    }
    Ok((inner.to_owned(), after.trim_start()))
}

pub(super) fn read_symbols(text: &str) -> Result<Symbols, String> {
    let mut symbols = Symbols::default();
    let mut ended = false;
    for (number, line) in text.lines().enumerate() {
        let at = |why: String| format!("line {}: {why}", number + 1);
        if ended {
            return Err(at("after the end".into()));
        }
        ended = symbols.line(line).map_err(at)?;
    }
    symbols.check()?;
    Ok(symbols)
}

impl Symbols {
    fn line(&mut self, line: &str) -> Result<bool, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut tokens = rest.split(' ');
        match word {
            "" => return Err("a blank line".into()),
            "VERSION" => {
                self.version = rest.parse().map_err(|_| "the version is no number")?;
                if self.version > 11.0 {
                    return Err("the viewer exits".into());
                }
            }
            "PROCESSORS" => self.processors = small(Some(rest))?,
            "MACHINE" | "USERNAME" | "HOSTNAME" | "COMMANDLINE" if !in_quotes(rest)?.1.is_empty() => {
                return Err(format!("`{rest}` ends too early"));
            }
            "TIMESTAMP" => check_instant(rest)?,
            "CHARMVERSION" if rest.contains(' ') || rest.is_empty() => return Err("not one word".into()),
            total if total.starts_with("TOTAL_") => {
                self.totals.insert(total.into(), small(Some(rest))?);
            }
            "CHARE" => {
                self.needs("TOTAL_CHARES")?;
                if self.version == 0.0 {
                    return Err("VERSION must come before".into());
                }
                let id = small(tokens.next())?;
                let (name, _) = in_quotes(rest.split_once(' ').ok_or("no name")?.1)?;
                self.chares.insert(id, name);
            }
            "ENTRY" => self.entry(rest)?,
            "EVENT" | "STAT" => {
                self.needs(if word == "EVENT" { "TOTAL_EVENTS" } else { "TOTAL_STATS" })?;
                let id = small(tokens.next())?;
                let name = rest.split_once(' ').ok_or("no name")?.1.to_owned();
                let table = if word == "EVENT" { &mut self.events } else { &mut self.statistics };
                if table.insert(id, name).is_some() {
                    return Err(format!("{word} {id} twice"));
                }
            }
            "MESSAGE" => self.needs("TOTAL_MSGS")?,
            "END" => return Ok(true),
            _ => {}
        }
        Ok(false)
    }

    fn entry(&mut self, rest: &str) -> Result<(), String> {
        self.needs("TOTAL_EPS")?;
        let mut parts = rest.splitn(3, ' ');
        let id = small(parts.nth(1))?;
        let (name, after) = in_quotes(parts.next().ok_or("no name")?)?;
        let chare = small(after.split(' ').next())?;
        if !self.chares.contains_key(&chare) {
            return Err(format!("no chare {chare}"));
        }
        if name.find('(').is_some_and(|open| !name[open..].contains(')')) {
            return Err(format!("`{name}` has a parenthesis without its partner"));
        }
        if self.entries.insert(id, name).is_some() {
            return Err(format!("entry {id} twice"));
        }
        Ok(())
    }

    fn needs(&self, total: &str) -> Result<(), String> {
        self.totals.contains_key(total).then_some(()).ok_or_else(|| format!("{total} must come before"))
    }

    fn check(&self) -> Result<(), String> {
        let total = |name: &str| self.totals.get(name).copied().unwrap_or(-1);
        let highest = self.entries.keys().max().copied().unwrap_or(-1);
        if total("TOTAL_EPS") <= highest || total("TOTAL_CHARES") < self.chares.len() as i64 {
            return Err("fewer entries or chares announced than there are".into());
        }
        if total("TOTAL_EVENTS") < self.events.len() as i64
            || total("TOTAL_STATS") < self.statistics.len() as i64
        {
            return Err("fewer events or statistics announced than there are".into());
        }
        if self.processors < 1 {
            return Err("no processors".into());
        }
        Ok(())
    }
}

fn check_instant(text: &str) -> Result<(), String> {
    let shape: String =
        text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    if shape == "0000-00-00T00:00:00Z" { Ok(()) } else { Err(format!("`{text}` is no instant")) }
}

/// State while the log of a row is read.
#[derive(Default)]
struct Reading {
    row: Row,
    number: i64,
    last_us: i64,
    open: Option<Slice>,
    idle_since: Option<i64>,
    spans: Vec<(i64, i64, i64, i64)>,
    /// The begin of a pair of records, which its end must follow.
    pair: Option<(i64, i64)>,
    last_event: i64,
    last_cpu_us: i64,
}

pub(super) fn read_log(text: &str, symbols: &Symbols, number: i64) -> Result<Row, String> {
    if number >= symbols.processors {
        return Err(format!("row {number} of {} is ignored", symbols.processors));
    }
    if !(7.0..9.0).contains(&symbols.version) {
        return Err("this reads logs of version 7".into());
    }
    let mut lines = text.lines();
    let head = lines.next().and_then(|line| line.strip_prefix("PROJECTIONS-RECORD "));
    whole(head).map_err(|why| format!("the first line: {why}"))?;
    if lines.next() != Some("6 0") {
        return Err("it does not begin with `6 0`".into());
    }
    let mut reading = Reading { number, last_event: -1, ..Reading::default() };
    let mut ended = false;
    for (position, line) in lines.enumerate() {
        let at = |why: String| format!("line {} `{line}`: {why}", position + 3);
        if ended {
            return Err(at("after the end".into()));
        }
        ended = reading.line(line, symbols).map_err(at)?;
    }
    if ended { Ok(reading.row) } else { Err("it has no end".into()) }
}

impl Reading {
    fn line(&mut self, line: &str, symbols: &Symbols) -> Result<bool, String> {
        let code = line.split(' ').next().unwrap_or("");
        let mut tokens = line.split(' ').skip(1);
        if code != "28" && code != "29" && line.split(' ').any(str::is_empty) {
            return Err("a blank line or a double blank".into());
        }
        if self.pair.is_some() && code != "100" {
            return Err("between the two lines of a pair".into());
        }
        match code {
            "1" | "20" | "21" => self.creation(code, &mut tokens, symbols)?,
            "2" => self.begin(&mut tokens, symbols)?,
            "3" => self.end(&mut tokens)?,
            "13" => {
                let event = known(tokens.next(), &symbols.events)?;
                let at_us = self.time(&mut tokens)?;
                self.event(&mut tokens)?;
                self.own(&mut tokens)?;
                self.row.marks.push((event, at_us));
            }
            "14" => {
                let at_us = self.time(&mut tokens)?;
                self.own(&mut tokens)?;
                if self.open.is_some() || self.idle_since.replace(at_us).is_some() {
                    return Err("idle inside of something else".into());
                }
            }
            "15" => {
                let at_us = self.time(&mut tokens)?;
                self.own(&mut tokens)?;
                let since_us = self.idle_since.take().ok_or("idle ends that did not begin")?;
                self.row.idle.push((since_us, at_us));
            }
            "27" => {
                whole(tokens.next())?;
                self.time(&mut tokens)?;
            }
            "28" => {
                self.time(&mut tokens)?;
                self.note(line, 2)?;
                return Ok(false);
            }
            "29" => {
                let begin_us = self.time(&mut tokens)?;
                if whole(tokens.next())? < begin_us {
                    return Err("it ends before it begins".into());
                }
                known(tokens.next(), &symbols.events)?;
                self.note(line, 4)?;
                return Ok(false);
            }
            "32" => self.statistic(&mut tokens, symbols)?,
            "98" | "99" => self.span(code, &mut tokens, symbols)?,
            "100" => self.pair(&mut tokens, symbols)?,
            "7" => {
                self.row.end_us = self.time(&mut tokens)?;
                if self.open.is_some() || self.idle_since.is_some() || !self.spans.is_empty() {
                    return Err("something is still open".into());
                }
            }
            _ => return Err("this record is none of those that are to be written".into()),
        }
        if tokens.next().is_some() { Err("more than belongs there".into()) } else { Ok(code == "7") }
    }

    fn time<'a>(&mut self, tokens: &mut impl Iterator<Item = &'a str>) -> Result<i64, String> {
        let at_us = whole(tokens.next())?;
        if at_us < self.last_us {
            return Err(format!("time runs backwards, from {}", self.last_us));
        }
        self.last_us = at_us;
        Ok(at_us)
    }

    /// Reads an event number of this row. Event numbers must increase.
    fn event<'a>(&mut self, tokens: &mut impl Iterator<Item = &'a str>) -> Result<i64, String> {
        let event = small(tokens.next())?;
        if event <= self.last_event {
            return Err(format!("event {event} comes after event {}", self.last_event));
        }
        self.last_event = event;
        Ok(event)
    }

    fn own<'a>(&self, tokens: &mut impl Iterator<Item = &'a str>) -> Result<(), String> {
        if small(tokens.next())? == self.number { Ok(()) } else { Err("it names another row".into()) }
    }

    fn creation<'a>(
        &mut self,
        code: &str,
        tokens: &mut impl Iterator<Item = &'a str>,
        symbols: &Symbols,
    ) -> Result<(), String> {
        small(tokens.next())?;
        known(tokens.next(), &symbols.entries)?;
        self.time(tokens)?;
        let event = self.event(tokens)?;
        self.own(tokens)?;
        small(tokens.next())?;
        small(tokens.next())?;
        if code != "1" {
            let rows = small(tokens.next())?;
            for _ in 0..if code == "21" { rows } else { 0 } {
                small(tokens.next())?;
            }
        }
        if self.open.is_none() {
            return Err("sent outside of any entry".into());
        }
        self.row.sent.insert(event);
        Ok(())
    }

    fn begin<'a>(
        &mut self,
        tokens: &mut impl Iterator<Item = &'a str>,
        symbols: &Symbols,
    ) -> Result<(), String> {
        small(tokens.next())?;
        let entry = known(tokens.next(), &symbols.entries)?;
        let begin_us = self.time(tokens)?;
        let (event, source, bytes) = (small(tokens.next())?, small(tokens.next())?, small(tokens.next())?);
        whole(tokens.next())?;
        let ids =
            [small(tokens.next())?, small(tokens.next())?, small(tokens.next())?, small(tokens.next())?];
        self.cpu(tokens)?;
        let slice = Slice { entry, begin_us, end_us: begin_us, event, source, bytes, ids };
        if self.idle_since.is_some() || self.open.replace(slice).is_some() {
            return Err("an entry inside of something else".into());
        }
        if source == self.number && !self.row.sent.contains(&event) {
            self.last_event = self.last_event.max(event);
        }
        Ok(())
    }

    fn end<'a>(&mut self, tokens: &mut impl Iterator<Item = &'a str>) -> Result<(), String> {
        small(tokens.next())?;
        let entry = small(tokens.next())?;
        let end_us = self.time(tokens)?;
        let (event, source) = (small(tokens.next())?, small(tokens.next())?);
        small(tokens.next())?;
        self.cpu(tokens)?;
        let mut slice = self.open.take().ok_or("an entry ends that did not begin")?;
        if (slice.entry, slice.event, slice.source) != (entry, event, source) {
            return Err("another entry ends than began".into());
        }
        if !self.spans.is_empty() {
            return Err("a span outlives its entry".into());
        }
        slice.end_us = end_us;
        self.row.slices.push(slice);
        Ok(())
    }

    fn cpu<'a>(&mut self, tokens: &mut impl Iterator<Item = &'a str>) -> Result<(), String> {
        let cpu_us = whole(tokens.next())?;
        if cpu_us < self.last_cpu_us {
            return Err("CPU time runs backwards".into());
        }
        self.last_cpu_us = cpu_us;
        Ok(())
    }

    fn statistic<'a>(
        &mut self,
        tokens: &mut impl Iterator<Item = &'a str>,
        symbols: &Symbols,
    ) -> Result<(), String> {
        self.time(tokens)?;
        let (phase, value) = (decimal(tokens.next())?, decimal(tokens.next())?);
        self.own(tokens)?;
        let name = known(tokens.next(), &symbols.statistics)?;
        self.row.statistics.push((phase, value, name));
        Ok(())
    }

    fn span<'a>(
        &mut self,
        code: &str,
        tokens: &mut impl Iterator<Item = &'a str>,
        symbols: &Symbols,
    ) -> Result<(), String> {
        let name = known(tokens.next(), &symbols.events)?;
        let at_us = self.time(tokens)?;
        if code == "98" {
            let event = self.event(tokens)?;
            self.own(tokens)?;
            self.spans.push((name, small(tokens.next())?, event, at_us));
            return if self.open.is_some() { Ok(()) } else { Err("a span outside of any entry".into()) };
        }
        let event = small(tokens.next())?;
        self.own(tokens)?;
        let depth = small(tokens.next())?;
        let (began, begun_at, begun_event, begin_us) =
            self.spans.pop().ok_or("a span ends that did not begin")?;
        if (began, begun_at, begun_event) != (name, depth, event) {
            return Err("another span ends than began".into());
        }
        self.row.spans.push((name, begin_us, at_us));
        Ok(())
    }

    fn pair<'a>(
        &mut self,
        tokens: &mut impl Iterator<Item = &'a str>,
        symbols: &Symbols,
    ) -> Result<(), String> {
        let name = known(tokens.next(), &symbols.events)?;
        self.time(tokens)?;
        let event = small(tokens.next())?;
        self.own(tokens)?;
        small(tokens.next())?;
        match self.pair.take() {
            None => self.pair = Some((name, event)),
            Some(begun) if begun == (name, event) => {}
            Some(_) => return Err("the second line of a pair is of another".into()),
        }
        Ok(())
    }

    /// Reads a length and the text after it, from field number `field` on.
    fn note(&mut self, line: &str, field: usize) -> Result<(), String> {
        let rest = line.splitn(field + 1, ' ').nth(field).ok_or("no length")?;
        let (length, text) = rest.split_once(' ').ok_or("no blank after the length")?;
        let length = small(Some(length))?;
        if !text.is_ascii() || length != text.len() as i64 {
            return Err(format!("{length} is not the length of `{text}`"));
        }
        self.row.notes.push(text.to_owned());
        Ok(())
    }
}

fn known(token: Option<&str>, table: &BTreeMap<i64, String>) -> Result<i64, String> {
    let id = small(token)?;
    if table.contains_key(&id) { Ok(id) } else { Err(format!("{id} is not in the table")) }
}

/// A number with digits and a point, because the viewer reads no exponents.
fn decimal(token: Option<&str>) -> Result<f64, String> {
    let token = token.ok_or("a number is missing")?;
    let plain = token.strip_prefix('-').unwrap_or(token).chars().all(|l| l.is_ascii_digit() || l == '.');
    token.parse().ok().filter(|_| plain).ok_or_else(|| format!("`{token}` is not read as written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STS: &str = "PROJECTIONS_ID\nVERSION 7.0\nTOTAL_PHASES 1\nMACHINE \"m\"\nPROCESSORS 2\nTOTAL_CHARES 1\n\
        TOTAL_EPS 2\nTOTAL_MSGS 1\nTOTAL_PSEUDOS 0\nTOTAL_EVENTS 1\nCHARE 0 \"Chunk\"\nENTRY CHARE 0 \"step\" 0 0\n\
        ENTRY CHARE 1 \"halo(int n)\" 0 0\nMESSAGE 0 0\nTOTAL_STATS 1\nEVENT 10 mark\nSTAT 0 imbalance\nEND\n";
    const LOG: &str = "PROJECTIONS-RECORD 0\n6 0\n14 5 0\n15 100 0\n2 21 0 100 0 0 64 0 3 0 0 0 90\n\
        98 10 120 1 0 0\n99 10 130 1 0 0\n1 21 1 150 2 0 1024 12\n13 10 160 3 0\n29 160 170 10 2 ab\n\
        3 21 0 400 0 0 0 380\n28 400 5 hello\n32 400 1 1.45 0 0\n7 1000\n";

    #[test]
    fn what_is_right_is_read() {
        let symbols = read_symbols(STS).unwrap();
        let row = read_log(LOG, &symbols, 0).unwrap();
        assert_eq!((row.idle[..].to_vec(), row.slices.len(), row.end_us), (vec![(5, 100)], 1, 1000));
        assert_eq!((row.slices[0].begin_us, row.slices[0].end_us, row.slices[0].ids[0]), (100, 400, 3));
        assert_eq!((row.spans, row.notes), (vec![(10, 120, 130)], vec!["ab".to_owned(), "hello".to_owned()]));
    }

    #[test]
    fn every_trap_of_a_log_is_refused() {
        let symbols = read_symbols(STS).unwrap();
        for (from, to, why) in [
            ("14 5 0\n", "\n14 5 0\n", "a blank line"),
            ("15 100 0", "15 4 0", "time runs backwards"),
            ("15 100 0\n", "", "an entry inside of something else"),
            ("3 21 0 400 0 0 0 380\n", "", "something is still open"),
            ("13 10 160", "13 11 160", "11 is not in the table"),
            ("2 21 0 100", "2 21 7 100", "7 is not in the table"),
            ("100 0 0 64 0 3 0", "100 0 0 64 0 4294967299 0", "cut to 32 bits"),
            ("1 21 1 150 2", "1 21 1 150 1", "event 1 comes after event 1"),
            ("1 21 1 150 2", "1 21 1 150 2147483648", "cut to 32 bits"),
            ("1 21 1 150 2 0", "1 21 1 150 2 1", "it names another row"),
            ("28 400 5 hello", "28 400 5hello", "no blank after the length"),
            ("28 400 5 hello", "28 400 6 hello", "is not the length"),
            ("28 400 5 hello", "28 400 4 hello", "is not the length"),
            ("28 400 5 hello", "28 400 6 héllo", "is not the length"),
            ("32 400 1 1.45", "32 400 1 1.25e-05", "is not read as written"),
            ("32 400 1 1.45", "32 400 1 NaN", "is not read as written"),
            ("99 10 130 1 0 0", "14 130 0", "idle inside"),
            ("99 10 130 1 0 0\n", "", "a span outlives its entry"),
            ("3 21 0 400 0", "3 21 1 400 0", "another entry ends"),
            ("0 0 0 380", "0 0 0 80", "CPU time runs backwards"),
            ("7 1000\n", "", "it has no end"),
            ("7 1000\n", "7 1000\n14 1000 0\n", "after the end"),
            ("6 0\n", "", "it does not begin"),
            ("13 10 160 3 0\n", "10 21 160 3 0 5\n", "none of those"),
        ] {
            assert!(LOG.contains(from), "{from}");
            let refused = read_log(&LOG.replacen(from, to, 1), &symbols, 0).expect_err(why);
            assert!(refused.contains(why), "{from} -> {to} gave {refused}");
        }
        let outside = LOG.replacen("15 100 0\n", "15 100 0\n1 21 1 100 0 0 8 0\n", 1);
        assert!(read_log(&outside, &symbols, 0).unwrap_err().contains("outside of any entry"));
    }

    #[test]
    fn every_trap_of_a_symbol_table_is_refused() {
        for (from, to, why) in [
            ("TOTAL_PHASES 1\n", "TOTAL_PHASES 1\n\n", "a blank line"),
            ("VERSION 7.0", "VERSION 12.0", "the viewer exits"),
            ("TOTAL_EVENTS 1", "TOTAL_EVENTS 0", "fewer events"),
            ("TOTAL_STATS 1", "TOTAL_STATS 0", "fewer events or statistics"),
            ("TOTAL_EPS 2", "TOTAL_EPS 1", "fewer entries"),
            ("halo(int n)", "halo(int n", "without its partner"),
            ("halo(int n)", "halo  (int n)", "is not read as written"),
            ("\"step\"", "\"st\"ep\"", "a quote inside"),
            ("PROCESSORS 2", "PROCESSORS 2\nTIMESTAMP 2026-11-21 08:00", "is no instant"),
            ("TOTAL_CHARES 1\n", "", "TOTAL_CHARES must come before"),
            ("END\n", "END\nSTAT 1 x\n", "after the end"),
        ] {
            assert!(STS.contains(from), "{from}");
            let refused = read_symbols(&STS.replacen(from, to, 1)).expect_err(why);
            assert!(refused.contains(why), "{from} -> {to} gave {refused}");
        }
    }

    #[test]
    fn the_examples_of_the_format_are_read() {
        for (name, slices, ends_us) in [("example7", 2, 1000), ("full7", 9, 1000)] {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/projections").join(name);
            if !dir.is_dir() {
                println!("skipped: {} is not there", dir.display());
                continue;
            }
            let export = read_export(&dir).unwrap();
            let count: usize = export.rows.values().map(|row| row.slices.len()).sum();
            assert_eq!((count, export.rows[&0].end_us, export.rows.len()), (slices, ends_us, 2), "{name}");
        }
    }
}
