//! Prints the spans, marks and counters that the program itself named, for `profile --user`.

use std::collections::BTreeMap;

use caribou::trace::{Event, NameId, What};
use trace_reader::{Problem, Trace};

use crate::trace::analysis::events::{Observer, Scope, WorkerRef, by_worker};
use crate::trace::page::{Cell, Page, Table, columns};
use crate::trace::select::{Selection, Window};

/// Figures of the spans of one name, times in ns.
#[derive(Default)]
struct Span {
    count: u64,
    total_ns: f64,
    longest_ns: u64,
}

/// Figures of the marks of one name.
struct Mark {
    count: u64,
    first_ns: u64,
    last_ns: u64,
}

/// Figures of the values of one counter.
struct Counter {
    count: u64,
    sum: f64,
    least: f64,
    most: f64,
    /// Time and value of the last.
    last: (u64, f64),
}

/// All spans, marks and counters in a span of time.
struct User {
    window: Window,
    spans: BTreeMap<NameId, Span>,
    marks: BTreeMap<NameId, Mark>,
    counters: BTreeMap<NameId, Counter>,
}

/// The page of the command, and what could not be read. Memory grows with the names, time with the events.
pub(super) fn page(trace: &Trace, selection: &Selection) -> (Page, Vec<Problem>) {
    let scope = Scope::selected(trace, selection);
    let window = scope.window;
    let (spans, marks, counters) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut user = User { window, spans, marks, counters };
    let problems = by_worker(&scope, &mut [&mut user]);
    let workers: f64 = selection.ranks(trace).map(|rank| f64::from(rank.workers)).sum();
    let all_ns = window.length_ns() as f64 * workers;
    let mut page = Page::new("profile_user", trace);
    page.tables = vec![user.spans(trace, all_ns), user.marks(trace), user.counters(trace)];
    page.tables.retain(|table| !table.rows().is_empty());
    if page.tables.is_empty() {
        page.says.push(match trace.events() {
            0 => "no events were recorded: run with CARIBOU_TRACE set".into(),
            _ => "the program recorded no spans, marks or counters here: see Ctx::span, Ctx::mark and \
                Ctx::counter"
                .into(),
        });
    } else {
        page.notes.push(
            "times: wall time; share: of the time of all workers; spans may lie inside each other".into(),
        );
    }
    (page, problems)
}

impl Observer<'_> for User {
    fn see(&mut self, _: WorkerRef<'_>, event: &Event) {
        let (begin_ns, end_ns) = (event.begin_ns, event.end_ns);
        match event.what {
            What::Span { name, .. } => {
                let span = self.spans.entry(name).or_default();
                let inside_ns = self.window.overlap_ns(begin_ns, end_ns);
                span.count += 1;
                span.total_ns += inside_ns as f64;
                span.longest_ns = span.longest_ns.max(inside_ns);
            }
            What::Mark { name, .. } => {
                let new = Mark { count: 0, first_ns: begin_ns, last_ns: begin_ns };
                let mark = self.marks.entry(name).or_insert(new);
                mark.count += 1;
                (mark.first_ns, mark.last_ns) = (mark.first_ns.min(begin_ns), mark.last_ns.max(begin_ns));
            }
            What::Counter { name, value, .. } if value.is_finite() => {
                let new = Counter { count: 0, sum: 0.0, least: value, most: value, last: (end_ns, value) };
                let counter = self.counters.entry(name).or_insert(new);
                counter.count += 1;
                counter.sum += value;
                (counter.least, counter.most) = (counter.least.min(value), counter.most.max(value));
                if end_ns >= counter.last.0 {
                    counter.last = (end_ns, value);
                }
            }
            _ => {}
        }
    }
}

impl User {
    /// Table of spans, the most time first.
    fn spans(&self, trace: &Trace, all_ns: f64) -> Table {
        let columns = columns("span | count | time_ns: total | mean_ns: mean | longest_ns: longest | share");
        let mut table = Table::new("spans", "spans", &columns);
        let mut spans: Vec<_> = self.spans.iter().collect();
        spans.sort_by(|(a, one), (b, other)| other.total_ns.total_cmp(&one.total_ns).then(a.cmp(b)));
        for (name, span) in spans {
            table.row([
                Cell::Text(trace.name(*name)),
                Cell::Count(span.count),
                Cell::Ns(span.total_ns),
                Cell::Ns(span.total_ns / span.count as f64),
                Cell::ns(span.longest_ns),
                if all_ns > 0.0 { Cell::Share(span.total_ns / all_ns) } else { Cell::Empty },
            ]);
        }
        table
    }

    fn marks(&self, trace: &Trace) -> Table {
        let columns = [("mark", "mark"), ("count", "count"), ("first_ns", "first"), ("last_ns", "last")];
        let mut table = Table::new("marks", "marks", &columns);
        for (name, mark) in &self.marks {
            let times = [mark.first_ns, mark.last_ns].map(Cell::ns);
            table.row([Cell::Text(trace.name(*name)), Cell::Count(mark.count)].into_iter().chain(times));
        }
        table
    }

    fn counters(&self, trace: &Trace) -> Table {
        let columns = columns("counter | count | mean | least | most | last");
        let mut table = Table::new("counters", "counters", &columns);
        for (name, counter) in &self.counters {
            let mean = counter.sum / counter.count as f64;
            let values = [mean, counter.least, counter.most, counter.last.1].map(Cell::Number);
            table.row([Cell::Text(trace.name(*name)), Cell::Count(counter.count)].into_iter().chain(values));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use caribou::trace::{End, Event, Name, NameId, RunRecord, What, Writer};

    use crate::tests::{Scratch, caribou};
    use crate::trace::tests::{chunk, idle, json, write_rank};

    #[test]
    fn spans_marks_and_counters_are_added_up_by_name() {
        let scratch = Scratch::new("profile-user");
        let run = RunRecord { ranks: 1, workers: vec![2], ..RunRecord::default() };
        let mut writer = Writer::create(scratch.path(), &run).unwrap();
        let name = |text: &str| Name { array: None, text: text.into() };
        writer.names(&[name("solve"), name("output"), name("residual")]).unwrap();
        let chunk = chunk(1);
        let span = |begin_ns, end_ns| Event { begin_ns, end_ns, what: What::Span { chunk, name: NameId(0) } };
        let counter = |at_ns, value| Event::point(at_ns, What::Counter { chunk, name: NameId(2), value });
        let mark = Event::point(50, What::Mark { chunk, name: NameId(1) });
        writer.events(0, &[span(0, 40), mark, span(100, 160), counter(170, 4.0)]).unwrap();
        writer.events(1, &[span(10, 110), counter(150, 2.0)]).unwrap();
        writer.finish(&End { elapsed_ns: 1000, ..End::default() }).unwrap();

        let shown = |options: &[&str]| {
            json(&[&["profile", scratch.text(), "--user"], options].concat())["tables"].take()
        };
        let all = shown(&[]);
        let row = serde_json::json!({ "span": "solve", "count": 3, "time_ns": 200.0, "mean_ns": 67.0, "longest_ns": 100.0, "share": 0.1 });
        assert_eq!(all["spans"], serde_json::json!([row]));
        assert_eq!(all["marks"][0]["count"], 1);
        assert_eq!((&all["counters"][0]["mean"], &all["counters"][0]["last"]), (&3.0.into(), &4.0.into()));
        let part = shown(&["--time", "..50ns"]);
        assert_eq!(part["spans"][0]["time_ns"], 80.0, "40 of the first, and 40 of that on the other worker");
        assert!(part["counters"].is_null());
    }

    #[test]
    fn a_program_that_names_nothing_is_told_how() {
        let scratch = Scratch::new("profile-user-none");
        write_rank(&scratch, &RunRecord::default(), &[idle(0, 5)], 5);
        let text = caribou(&["trace", "profile", scratch.text(), "--user"]).unwrap();
        assert!(
            text.contains("the program recorded no spans, marks or counters here: see Ctx::span"),
            "{text}"
        );
    }
}
