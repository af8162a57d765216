//! Draws the timeline as a picture: a lane per row, slices in the colour of their kind, and arrows for messages.
//!
//! Slices narrower than a pixel are merged per pixel, which shows the class with most time; a note states their number.
//! So the size of the picture is bounded by its pixels and arrows. Idle time is nearly white, so that the effect of a
//! busy process on other ranks is visible, as in figure 1 of the refinement paper (Gupta et al., 2013).

use std::collections::{BTreeMap, BTreeSet};

use caribou::trace::{Event, What};
use presentation::svg::{Anchor, Area, Svg};
use trace_reader::Trace;

use super::super::analysis::events::WorkerRef;
use super::super::analysis::messages::{Matcher, Message, Received, Sent};
use super::super::page::duration;
use super::super::palette;
use super::super::select::Window;
use super::Options;
use super::arrows::Slowest;
use super::lane::{Form, Lane, Shape};
use super::view::{Class, Slice, View};

const LEFT: f64 = 110.0;
const TOP: f64 = 56.0;
/// Height of all lanes together in pixels, if there are many.
const LANES_HIGH: f64 = 900.0;
/// Smallest width in pixels of slices that have a hint.
const HINT_WIDE: f64 = 3.0;

/// A timeline picture.
pub(super) struct TimelineImage {
    window: Window,
    pixels: f64,
    colours: BTreeMap<String, &'static str>,
    lanes: Vec<Lane>,
    seen: BTreeSet<Class>,
    matcher: Option<Matcher<Sent, Received>>,
    slowest: Slowest,
}

impl TimelineImage {
    pub(super) fn new(trace: &Trace, window: Window, options: &Options) -> TimelineImage {
        TimelineImage {
            window,
            pixels: f64::from(options.pixels),
            colours: palette::kinds(trace),
            lanes: Vec::new(),
            seen: BTreeSet::new(),
            matcher: (options.arrows > 0 && trace.run.arrows > 0).then(Matcher::default),
            slowest: Slowest::new(options.arrows as usize),
        }
    }

    pub(super) fn slice(&mut self, trace: &Trace, slice: &Slice) {
        let &Slice { row, class, begin_ns, end_ns, lost_ns } = slice;
        let (from, to) = (self.x(begin_ns), self.x(end_ns));
        let worked_ns = end_ns.saturating_sub(lost_ns).max(begin_ns);
        self.seen.insert(class);
        if lost_ns > 0 {
            self.seen.insert(Class::Lost);
        }
        let worked = self.x(worked_ns);
        let lane = self.lane(row);
        if to - from < 1.0 {
            lane.narrow(from, to, class, worked_ns - begin_ns, end_ns - worked_ns);
            return;
        }
        lane.close();
        let hint = (to - from >= HINT_WIDE).then(|| {
            let lost = if lost_ns > 0 {
                format!(", {} of it lost", duration(lost_ns as f64))
            } else {
                String::new()
            };
            let long = duration((end_ns - begin_ns) as f64);
            format!("{} at {}: {long}{lost}", class.name(trace), duration(begin_ns as f64))
        });
        if worked > from {
            lane.shapes.push(Shape { from, to: worked, form: Form::Slice(class), hint: hint.clone() });
        }
        if to > worked {
            lane.shapes.push(Shape { from: worked, to, form: Form::Slice(Class::Lost), hint });
        }
    }

    /// Draws marks and spans, which are drawn over slices.
    pub(super) fn annotate(&mut self, trace: &Trace, row: usize, event: &Event) {
        let (from, to) = (self.x(event.begin_ns), self.x(event.end_ns));
        let lane = self.lane(row);
        let (form, name, merged) = match event.what {
            What::Mark { name, .. } => (Form::Mark, name, lane.has_mark(from as i64)),
            What::Span { name, .. } => (Form::Span, name, to - from < 1.0 && lane.has_span(from as i64)),
            _ => return,
        };
        if merged {
            return;
        }
        let hint = format!("{} at {}", trace.name(name), duration(event.begin_ns as f64));
        lane.shapes.push(Shape { from, to: to.max(from + 0.5), form, hint: Some(hint) });
    }

    /// Keeps the messages with the longest latency between different workers.
    pub(super) fn message(&mut self, place: WorkerRef<'_>, event: &Event) {
        let Some(matcher) = &mut self.matcher else { return };
        let Some(message) = matcher.see(place, event).other() else { return };
        let window = self.window;
        if message.sent.at_ns < window.from_ns || message.begun.at_ns > window.to_ns {
            return;
        }
        let same_worker = message.sent.worker == message.begun.worker;
        if same_worker {
            return;
        }
        self.slowest.add(message);
    }

    /// The picture, and notes about omissions.
    pub(super) fn finish(mut self, trace: &Trace, view: &View) -> (Svg, Vec<String>) {
        self.lanes.resize_with(view.rows().max(self.lanes.len()), Lane::default);
        self.lanes.iter_mut().for_each(Lane::close);
        let order = view.order();
        let high = (LANES_HIGH / order.len().max(1) as f64).clamp(3.0, 24.0);
        let bottom = TOP + high * order.len() as f64;
        let (legend, notes) = (self.legend(trace), self.notes());
        let room = 60.0 + 18.0 * (1 + legend.len() / 4 + notes.len()) as f64;
        let title = format!("{}: {}", trace.run.run_id, trace.run.arguments.join(" "));
        let mut svg = palette::picture(LEFT + self.pixels + 30.0, bottom + room, &title);
        svg.text((LEFT, 16.0), Anchor::Start, &shortened(&title, self.pixels));
        self.axis(&mut svg, bottom);
        let mut places = vec![0.0; self.lanes.len()];
        for (number, &row) in order.iter().enumerate() {
            let y = TOP + high * number as f64;
            places[row] = y + high / 2.0;
            if high >= 9.0 || number % (9.0 / high).ceil() as usize == 0 {
                svg.text(
                    (LEFT - 6.0, y + high / 2.0 + 4.0),
                    Anchor::End,
                    &shortened(&view.name(trace, row), LEFT),
                );
            }
            let lane = &self.lanes[row];
            lane.shapes.iter().for_each(|shape| self.shape(trace, &mut svg, shape, y, high));
        }
        self.syncs(trace, &mut svg, bottom);
        self.draw_arrows(&mut svg, view, &places);
        let below = Area::at((LEFT, bottom + 30.0), (self.pixels, 0.0));
        let mut y = below.top + svg.legend(below, &legend) + 10.0;
        for note in &notes {
            svg.text((LEFT, y), Anchor::Start, note);
            y += 18.0;
        }
        (svg, notes)
    }

    fn lane(&mut self, row: usize) -> &mut Lane {
        if self.lanes.len() <= row {
            self.lanes.resize_with(row + 1, Lane::default);
        }
        &mut self.lanes[row]
    }

    /// Pixels from the left edge of a lane.
    fn x(&self, at_ns: u64) -> f64 {
        let at_ns = at_ns.clamp(self.window.from_ns, self.window.to_ns) - self.window.from_ns;
        at_ns as f64 * self.pixels / self.window.length_ns().max(1) as f64
    }

    fn colour(&self, trace: &Trace, class: Class) -> &'static str {
        match class {
            Class::Kind(_) | Class::Iterations => {
                self.colours.get(&class.name(trace)).copied().unwrap_or(palette::numbered(0))
            }
            Class::Rank(rank) => palette::numbered(u64::from(rank)),
            Class::Moving => "#000000",
            Class::Runtime => palette::RUNTIME,
            Class::Idle => palette::IDLE,
            Class::Lost => palette::LOST,
        }
    }

    fn shape(&self, trace: &Trace, svg: &mut Svg, shape: &Shape, y: f64, high: f64) {
        let (x, wide) = (LEFT + shape.from, (shape.to - shape.from).max(0.3));
        let hint = shape.hint.as_deref();
        let inner = (high - 2.0).max(2.0);
        let (area, fill) = match shape.form {
            Form::Slice(class) => (Area::at((x, y + 1.0), (wide, inner)), self.colour(trace, class)),
            Form::Span => (Area::at((x, y + inner - 1.0), (wide, 2.0)), "#000000"),
            Form::Mark => (Area::at((x - 1.0, y), (2.0, high)), "#d55e00"),
        };
        svg.rect(area, fill, hint);
    }

    fn axis(&self, svg: &mut Svg, bottom: f64) {
        for tick in 0..=8 {
            let along = f64::from(tick) / 8.0;
            let x = LEFT + along * self.pixels;
            svg.line_as((x, bottom), (x, bottom + 5.0), r##"stroke="#404040""##, None);
            let at_ns = self.window.from_ns as f64 + along * self.window.length_ns() as f64;
            svg.text((x, bottom + 18.0), Anchor::Middle, &duration(at_ns));
        }
    }

    fn syncs(&self, trace: &Trace, svg: &mut Svg, bottom: f64) {
        let (mut last, mut named) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let syncs = trace.syncs.iter().map(|sync| (sync.at_ns, "sync", sync.sync, sync.moved));
        let divided = trace.steps.iter().filter(|step| step.divided);
        let divisions = divided.map(|step| (step.begin_ns, "step", step.step, step.moved));
        for (at_ns, what, number, moved) in syncs.chain(divisions) {
            let x = LEFT + self.x(at_ns);
            if !super::inside(self.window, at_ns) || x - last < 1.0 {
                continue;
            }
            last = x;
            let style = r##"stroke="#0072b2" stroke-dasharray="4 3""##;
            svg.line_as((x, TOP - 10.0), (x, bottom), style, None);
            if x - named > 70.0 {
                named = x;
                let words = format!("{what} {number}: {moved} moved");
                svg.text(
                    (x, TOP - 14.0),
                    Anchor::Middle,
                    if moved > 0 { &words } else { words.split(':').next().unwrap_or("") },
                );
            }
        }
    }

    fn draw_arrows(&self, svg: &mut Svg, view: &View, places: &[f64]) {
        for message in self.slowest.messages() {
            let Message { sent, begun } = message;
            let from = view.known_row(sent.worker, sent.from);
            let to = view.known_row(begun.worker, sent.to);
            let (Some(from), Some(to)) = (from, to) else { continue };
            let (x1, x2) = (LEFT + self.x(sent.at_ns), LEFT + self.x(message.found_ns()));
            let (y1, y2) = (places[from], places[to]);
            let hint = format!(
                "message from rank {} to {}: {}",
                sent.worker.rank,
                begun.worker.rank,
                duration(message.latency_ns() as f64)
            );
            svg.line_as(
                (x1, y1),
                (x2, y2),
                r#"stroke="black" stroke-width="0.7" opacity="0.6""#,
                Some(&hint),
            );
            svg.rect(Area::at((x2 - 1.5, y2 - 1.5), (3.0, 3.0)), "black", None);
        }
    }

    fn legend(&self, trace: &Trace) -> Vec<(String, &'static str)> {
        let mut entries: Vec<_> =
            self.seen.iter().take(24).map(|&class| (class.name(trace), self.colour(trace, class))).collect();
        if let Some(more) = self.seen.len().checked_sub(24).filter(|&more| more > 0) {
            entries.push((format!("and {more} more"), "#ffffff"));
        }
        entries
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let merged = self.lanes.iter().fold(0u64, |sum, lane| sum + lane.merged);
        let pixel = duration(self.window.length_ns() as f64 / self.pixels);
        if merged > 0 {
            notes.push(format!(
                "picture: {merged} slices shorter than a pixel ({pixel}) are merged with their neighbours"
            ));
        }
        if self.matcher.is_some() {
            let (shown, all) = (self.slowest.len(), self.slowest.seen);
            notes.push(format!("picture: arrows for the {shown} of {all} recorded messages between workers that were longest under way"));
        }
        notes
    }
}

/// Shortens a text to `pixels` pixels.
fn shortened(words: &str, pixels: f64) -> String {
    let most = (pixels / 6.5) as usize;
    match words.chars().count() > most {
        true => words.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => words.to_owned(),
    }
}
