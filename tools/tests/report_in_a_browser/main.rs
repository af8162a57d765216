//! Tests `caribou trace report` in a real browser: opens pages from disk, moves the pointer, types, and takes pictures.
//! Needs Chromium or Chrome in PATH. Without one, each test prints a line and passes.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]
#![expect(clippy::float_cmp, reason = "whole numbers are the same or they are not")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

mod browser;
mod open;
mod scratch;

use caribou::trace::{
    Activity, ArrayId, ChunkId, End, Event, Name, NameId, Part, Profile, RUNTIME, RunRecord, Shape, What,
    Writer,
};
use serde_json::{Value, json};
use trace_reader::Trace;

use crate::open::Open;
use crate::scratch::{Scratch, caribou};

#[test]
fn the_page_shows_the_numbers_of_the_trace() {
    let scratch = Scratch::generated("numbers", 20_000);
    let Some(open) = Open::new(&scratch) else { return };
    let trace = Trace::open(&scratch.trace()).unwrap();
    let mut cpu_ns = std::collections::BTreeMap::new();
    let (mut departs, mut sends, mut idle_ns) = (0.0, 0u64, 0);
    trace.for_each(|_, _, event| match event.what {
        What::Handler { kind, .. } => *cpu_ns.entry(trace.name(kind)).or_insert(0) += event.cpu_ns(),
        What::Depart { .. } => departs += 1.0,
        What::Send { .. } => sends += 1,
        What::Idle => idle_ns += event.duration_ns(),
        _ => {}
    });
    let kinds = open.column("profile-table", "kind");
    let times = open.column("profile-table", "time");
    let shown = |name: &str| {
        let place = kinds.iter().position(|kind| kind == name).unwrap();
        times[place].as_f64().unwrap() as u64
    };
    assert_eq!(cpu_ns.len(), 2);
    for (kind, ns) in &cpu_ns {
        assert_eq!(shown(kind), *ns, "{kind}");
    }
    assert_eq!(shown("idle"), idle_ns);
    assert_eq!(open.column("sync-table", "sync").len(), trace.syncs.len());
    let moved: u64 = trace.syncs.iter().map(|sync| sync.moved).sum();
    let sum = |values: Vec<Value>| values.iter().filter_map(Value::as_f64).sum::<f64>();
    assert_eq!(sum(open.column("sync-table", "moved")) as u64, moved);
    assert_eq!(sum(open.column("chunk-table", "moves")), departs);
    assert_eq!(sum(open.column("chunk-table", "CPU time")) as u64, cpu_ns.values().sum::<u64>());
    assert_eq!(sum(open.column("comm-table", "messages")) as u64, sends);
    assert_eq!(sum(open.column("worker-table", "idle")) as u64, idle_ns);
    // Executions by CPU time; and the critical path, which ends with the last slice.
    let kinds = open.column("duration-table", "what");
    let place = kinds.iter().position(|what| what == "execution, CPU").unwrap();
    let executions = open.column("duration-table", "sum")[place].as_f64().unwrap();
    assert_eq!(executions as u64, cpu_ns.values().sum::<u64>());
    let rest_ns = trace.elapsed_ns() - sum(open.column("path-table", "time")) as u64;
    assert!(rest_ns < trace.elapsed_ns() / 1000, "what is after the last slice: {rest_ns} ns");
    open.assert_no_complaints();
}

#[test]
fn the_timeline_zooms_and_pans_by_wheel_drag_buttons_and_keys() {
    let scratch = Scratch::generated("zoom", 20_000);
    let Some(open) = Open::new(&scratch) else { return };
    let whole = open.range();
    assert_eq!(whole.0, 0.0);
    assert_eq!(whole.1, Trace::open(&scratch.trace()).unwrap().elapsed_ns() as f64);
    let long = |range: (f64, f64)| range.1 - range.0;

    let (x, y) = open.place(0.25, 0.4);
    let before = open.number("scrollY");
    open.mouse("mouseWheel", x, y, 200.0);
    open.wait_for(&format!("scrollY > {before}"));
    assert_eq!(open.range(), whole, "the wheel alone is the page's");
    let (x, y) = open.place(0.25, 0.4);
    open.pinch(x, y, -200.0);
    open.wait_for("Number(document.getElementById('range').dataset.from) > 0");
    let wheeled = open.range();
    assert!(long(wheeled) < 0.8 * long(whole), "{wheeled:?}");
    let middle = 0.25 * long(whole);
    assert!((wheeled.0 + 0.25 * long(wheeled) - middle).abs() < 0.02 * middle, "what is pointed at stays");

    open.mouse("mousePressed", x, y, 0.0);
    open.mouse("mouseMoved", x - 100.0, y, 0.0);
    open.mouse("mouseReleased", x - 100.0, y, 0.0);
    let dragged = open.range();
    assert!(dragged.0 > wheeled.0 && (long(dragged) - long(wheeled)).abs() < 1.0, "{dragged:?}");

    open.click("zoom-in");
    let zoomed = open.range();
    assert!((long(zoomed) - 0.5 * long(dragged)).abs() < 1.0);
    open.click("pan-right");
    assert!(open.range().0 > zoomed.0);
    open.click("zoom-reset");
    assert_eq!(open.range(), whole);

    open.value("document.getElementById('timeline-canvas').focus()");
    for _ in 0..9 {
        open.press("+");
    }
    assert!((long(open.range()) - long(whole) / 512.0).abs() < 1.0);
    let before = open.range();
    open.strike("ArrowRight");
    assert!(open.range().0 > before.0);
    open.strike("ArrowDown");
    let said = open.readout();
    assert!(said.starts_with("rank 2 at "), "below the one pointed at: {said}");
    open.press("n");
    let said = open.readout();
    assert!(said.contains(" of Ring["), "the next slice has a chunk: {said}");
    open.strike("Home");
    assert_eq!(open.range(), whole);
    open.assert_no_complaints();
}

#[test]
fn pointing_at_the_timeline_tells_what_ran_there() {
    let scratch = Scratch::generated("hover", 20_000);
    let Some(open) = Open::new(&scratch) else { return };
    let trace = Trace::open(&scratch.trace()).unwrap();
    // The middle of the longest handler of rank 1.
    let handler = |event: &Event| matches!(event.what, What::Handler { .. });
    let longest = trace.ranks[1].stream(0).filter(handler).max_by_key(Event::duration_ns).unwrap();
    let What::Handler { chunk, .. } = longest.what else { unreachable!() };
    let part = (longest.begin_ns + longest.end_ns) as f64 / 2.0 / trace.elapsed_ns() as f64;
    let (x, y) = open.place(part, 1.5 / 4.0);
    for _ in 0..4 {
        open.pinch(x, y, -200.0);
    }
    let (from, to) = open.range();
    let point = |at_ns: f64| {
        let (x, y) = open.place((at_ns - from) / (to - from), 1.5 / 4.0);
        open.mouse("mouseMoved", x, y, 0.0);
        // The browser reports movements once per frame.
        open.frame();
        open.readout()
    };
    let said = point((longest.begin_ns + longest.end_ns) as f64 / 2.0);
    assert!(said.starts_with("rank 1 at "), "{said}");
    assert!(said.contains(&format!(" of {}, ", trace.chunk_name(chunk))), "{said}");

    // The longest idle slice in view, and the message that ended it.
    let events: Vec<Event> = trace.ranks[1].stream(0).collect();
    let in_view = |event: &&Event| event.begin_ns as f64 > from && (event.end_ns as f64) < to;
    let idle = events.iter().filter(|event| event.what == What::Idle).filter(in_view);
    let idle = idle.max_by_key(|event| event.duration_ns()).unwrap();
    let next = events.iter().find(|event| handler(event) && event.begin_ns >= idle.end_ns).unwrap();
    let What::Handler { from: waker, .. } = next.what else { unreachable!() };
    let said = point((idle.begin_ns + idle.end_ns) as f64 / 2.0);
    assert!(said.contains(": idle, ") && said.contains(", ended by "), "{said}");
    let sender = if waker == RUNTIME { "the runtime".into() } else { trace.chunk_name(waker) };
    assert!(said.contains(&format!(", sent by {sender}")), "{said}");
    open.assert_no_complaints();
}

#[test]
fn a_sync_a_chunk_and_an_outlier_lead_to_the_timeline() {
    let scratch = Scratch::generated("lead", 20_000);
    let Some(open) = Open::new(&scratch) else { return };
    let trace = Trace::open(&scratch.trace()).unwrap();
    let row = |section: &str| format!("document.querySelector('#{section} tr[data-from]')");
    open.value("document.querySelectorAll('details').forEach((details) => { details.open = true; })");
    for section in ["balancing", "chunks", "path", "phases"] {
        open.click("zoom-reset");
        let row = row(section);
        // As with the keyboard.
        open.value(&format!("{row}.querySelector('button').focus()"));
        open.strike("Enter");
        let of = |end: &str| open.number(&format!("Number({row}.dataset.{end})"));
        let ((from, to), long) = (open.range(), of("to") - of("from"));
        assert!(
            to - from <= f64::max(0.1 * trace.elapsed_ns() as f64, 2.0 * long),
            "{section}: {from} to {to}"
        );
        let middle = f64::midpoint(of("from"), of("to"));
        assert!((from..=to).contains(&middle), "{section}: {middle} in {from} to {to}");
        assert_eq!(open.text("document.activeElement.id"), "timeline-canvas");
        // The timeline is scrolled into view.
        open.wait_for("Math.abs(document.getElementById('timeline').getBoundingClientRect().top - 95) < 105");
    }
    // A chunk by its name, from a table without times.
    let name = open.text(&format!("{}.cells[0].textContent", row("chunks")));
    open.value(&format!("{}.querySelector('button').click()", row("chunks")));
    assert!(open.readout().contains(&format!(" of {name}, ")), "{}", open.readout());
    // A time in another picture.
    open.value("document.querySelector('#heat').scrollIntoView({block:'center',behavior:'instant'})");
    open.click("zoom-reset");
    let of =
        |side: &str| open.number(&format!("document.querySelector('#heat').getBoundingClientRect().{side}"));
    open.value("document.querySelector('#heat').scrollIntoView({block:'center',behavior:'instant'})");
    let (x, y) = (of("left") + 0.75 * of("width"), of("top") + 10.0);
    open.mouse("mousePressed", x, y, 0.0);
    open.mouse("mouseReleased", x, y, 0.0);
    let (from, to) = open.range();
    let (middle, expected) = (f64::midpoint(from, to), 0.75 * trace.elapsed_ns() as f64);
    assert!((middle - expected).abs() < 0.01 * expected, "{middle} is not {expected}");
    open.assert_no_complaints();

    // One execution takes a hundred times as long as the others of its chunk.
    let strange = Scratch::new("strange");
    let mut writer = Writer::create(&strange.trace(), &record(Shape::Arrays)).unwrap();
    let mut events: Vec<Event> = (0..60).map(|n| handler(1000 * n, 1000 * n + 900)).collect();
    events.push(handler(60_000, 160_000));
    writer.events(0, &events).unwrap();
    writer.finish(&End { elapsed_ns: 1_000_000, ..End::default() }).unwrap();
    let strange = strange.report();
    open.go(&strange.page());
    open.wait_for("performance.getEntriesByName('caribou-rendered').length > 0");
    open.value("document.querySelector('#outliers tr[data-from] button').click()");
    assert_eq!(open.range(), (10_000.0, 210_000.0), "twice its length");
    assert!(open.readout().contains("100.00 us from 60.000 us"), "{}", open.readout());
    open.assert_no_complaints();
}

#[test]
fn chunks_are_searched_tables_sorted_and_the_page_turns_dark() {
    let scratch = Scratch::generated("controls", 20_000);
    let Some(open) = Open::new(&scratch) else { return };
    assert_eq!(open.column("chunk-table", "chunk").len(), 32);
    open.click("chunk-search");
    for key in ["r", "i", "n", "g", "[", "1"] {
        open.strike(key);
    }
    let found = open.column("chunk-table", "chunk");
    assert_eq!(found.len(), 11, "Ring[1] and Ring[10] to Ring[19]");
    assert!(found.iter().all(|name| name.as_str().unwrap().starts_with("Ring[1")));
    assert_eq!(open.text("document.getElementById('chunk-count').textContent"), "11 of 32");
    open.value("(() => { const s = document.getElementById('chunk-search'); s.value = ''; s.dispatchEvent(new Event('input')); })()");

    let head = "[...document.querySelectorAll('#chunk-table thead button')].find((b) => b.textContent === 'executions')";
    open.value(&format!("{head}.click()"));
    let numbers = |open: &Open| {
        open.column("chunk-table", "executions").iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>()
    };
    let down = numbers(&open);
    assert!(down.is_sorted_by(|a, b| a >= b), "{down:?}");
    open.value(&format!("{head}.click()"));
    assert!(numbers(&open).is_sorted());
    assert_eq!(open.text(&format!("{head}.closest('th').getAttribute('aria-sort')")), "ascending");
    let names =
        "[...document.querySelectorAll('#chunk-table thead button')].find((b) => b.textContent === 'chunk')";
    open.value(&format!("{names}.click()"));
    let sorted: Vec<Value> = (0..32).map(|key| format!("Ring[{key}]").into()).collect();
    assert_eq!(open.column("chunk-table", "chunk"), sorted, "2 comes before 10");

    let ground = || open.text("getComputedStyle(document.body).backgroundColor");
    let light = ground();
    open.click("theme");
    let dark = ground();
    assert_eq!((&light[..], &dark[..]), ("rgb(255, 255, 255)", "rgb(20, 24, 28)"));
    open.click("theme");
    assert_eq!(ground(), light);

    open.click("stack-all");
    assert_eq!(open.text("getComputedStyle(document.querySelector('.by-kind')).display"), "none");
    assert_eq!(open.text("getComputedStyle(document.querySelector('.together')).display"), "inline");
    open.assert_no_complaints();
}

#[test]
fn the_bars_are_those_of_the_sync_that_is_chosen() {
    let scratch = Scratch::generated("bars", 20_000);
    let Some(open) = Open::new(&scratch) else { return };
    let syncs = Trace::open(&scratch.trace()).unwrap().syncs;
    for place in [0, syncs.len() - 2] {
        open.value(&format!(
            "(() => {{ const c = document.getElementById('sync-choice'); c.selectedIndex = {place};
              c.dispatchEvent(new Event('change')); }})()"
        ));
        let heights = open.value("[...document.querySelectorAll('#rank-bars rect.before')].map((r) => Number(r.getAttribute('height')))");
        let heights: Vec<f64> = serde_json::from_value(heights).unwrap();
        let before_ns = &syncs[place].before_ns;
        assert_eq!(heights.len(), before_ns.len());
        for (height, &ns) in heights.iter().zip(before_ns) {
            let ratio = ns as f64 / before_ns[0] as f64;
            assert!((height / heights[0] - ratio).abs() < 1e-6, "sync {place}");
        }
        let next = open.number("document.querySelectorAll('#rank-bars rect.next').length");
        assert_eq!(next as usize, syncs[place + 1].before_ns.len());
    }
    open.assert_no_complaints();
}

#[test]
fn messages_and_the_critical_path_are_drawn_when_asked_for() {
    let scratch = Scratch::generated("arrows", 4_000);
    let Some(open) = Open::new(&scratch) else { return };
    let picture = "document.getElementById('timeline-canvas').toDataURL()";
    open.frame();
    let without = open.text(picture);
    open.click("arrows");
    open.frame();
    assert_ne!(open.text(picture), without);
    open.click("arrows");
    open.frame();
    assert_eq!(open.text(picture), without);
    open.click("path-shown");
    open.frame();
    assert_ne!(open.text(picture), without, "the critical path is marked unless it is not wanted");
    open.assert_no_complaints();
}

const EVIL: &str = "</script x></script><img src=x onerror=\"window.harmed=1\"><script>window.harmed=2</script>\u{2028}'\"&<!--";

fn record(shape: Shape) -> RunRecord {
    RunRecord { ranks: 1, workers: vec![1], shape, arguments: vec![EVIL.into()], ..RunRecord::default() }
}

fn handler(begin_ns: u64, end_ns: u64) -> Event {
    let chunk = ChunkId { array: ArrayId(0), key: 1 };
    Event {
        begin_ns,
        end_ns,
        what: What::Handler { chunk, kind: NameId(0), from: RUNTIME, number: 0, lost_ns: 0 },
    }
}

#[test]
fn names_with_markup_do_no_harm() {
    let scratch = Scratch::new("hostile");
    let run =
        RunRecord { hosts: vec![EVIL.into()], lb: EVIL.into(), run_id: EVIL.into(), ..record(Shape::Arrays) };
    let mut writer = Writer::create(&scratch.trace(), &run).unwrap();
    writer.arrays(&[EVIL.into()]).unwrap();
    let kind = Name { array: Some(ArrayId(0)), text: EVIL.into() };
    let other = Name { array: None, text: format!("counter {EVIL}") };
    writer.names(&[kind, other]).unwrap();
    let chunk = ChunkId { array: ArrayId(0), key: 1 };
    writer.chunks(&[(chunk, EVIL.into())]).unwrap();
    let counter = What::Counter { chunk, name: NameId(1), value: 1.5 };
    let mark = What::Mark { chunk, name: NameId(1) };
    let events = [handler(10, 500), Event::point(500, counter), Event::point(600, mark), handler(700, 1000)];
    writer.events(0, &events).unwrap();
    writer.finish(&End { elapsed_ns: 1000, failed: Some(EVIL.into()), ..End::default() }).unwrap();
    let scratch = scratch.report();

    let Some(open) = Open::new(&scratch) else { return };
    let name = format!("{EVIL}[{EVIL}]");
    assert_eq!(open.column("chunk-table", "chunk"), [name]);
    assert_eq!(open.column("profile-table", "kind")[0], format!("{EVIL}::{EVIL}"));
    assert_eq!(open.text("document.querySelector('h1').textContent"), EVIL);
    open.value("document.getElementById('timeline-canvas').focus()");
    open.strike("ArrowDown");
    open.press("n");
    assert!(open.readout().contains(EVIL));
    assert_eq!(open.value("typeof window.harmed"), "undefined");
    assert_eq!(open.number("document.images.length"), 0.0);
    assert_eq!(open.number("document.scripts.length"), 2.0);
    open.assert_no_complaints();
}

#[test]
fn a_trace_that_was_cut_off_shows_what_is_left() {
    let scratch = Scratch::new("cut");
    caribou(&["generate".as_ref(), scratch.trace().as_ref(), "--events=200000".as_ref()]);
    let file = scratch.trace().join("rank-00002.trace");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let scratch = scratch.report();
    let Some(open) = Open::new(&scratch) else { return };
    assert!(open.text("document.getElementById('summary').textContent").contains("rank 2 was cut off"));
    assert_eq!(open.column("rank-table", "end"), ["ended", "ended", "cut off", "ended"]);
    assert!(open.text("document.getElementById('record').textContent").contains("could not be read"));
    let rest = open.column("worker-table", "not recorded");
    assert!(rest[2].as_f64().unwrap() > 10.0 * rest[1].as_f64().unwrap(), "{rest:?}");
    open.assert_no_complaints();
}

#[test]
fn a_pool_has_iterations_and_no_chunks() {
    let scratch = Scratch::new("pool");
    let mut writer = Writer::create(&scratch.trace(), &record(Shape::Pools)).unwrap();
    let range = |first: u64| What::Range { first, count: 10, lost_ns: 20 };
    let events: Vec<Event> = (0..50)
        .flat_map(|n| {
            let (begin_ns, end_ns) = (n * 1000, n * 1000 + 800);
            [
                Event { begin_ns, end_ns, what: range(10 * n) },
                Event::point(end_ns, What::PoolSend { rank: 0 }),
            ]
        })
        .collect();
    writer.events(0, &events).unwrap();
    writer.finish(&End { elapsed_ns: 50_000, ..End::default() }).unwrap();
    let scratch = scratch.report();
    let Some(open) = Open::new(&scratch) else { return };
    assert_eq!(open.column("profile-table", "kind"), ["iterations", "lost"]);
    assert_eq!(open.column("profile-table", "time"), [50 * 780, 50 * 20]);
    assert_eq!(open.column("comm-table", "messages"), [50]);
    assert!(open.text("document.getElementById('chunks').textContent").contains("no chunks"));
    assert!(open.text("document.getElementById('summary').textContent").contains("A pool"));
    open.assert_no_complaints();
}

#[test]
fn a_trace_without_events_is_drawn_from_its_profiles_or_says_what_to_record() {
    let scratch = Scratch::new("profile");
    let mut writer = Writer::create(&scratch.trace(), &record(Shape::Arrays)).unwrap();
    let mut profile = Profile::default();
    profile.add(Activity::Kind(NameId(0)), 0, 6_000_000, 6_000_000, 12, 900_000);
    profile.add(Activity::Runtime(Part::Measure), 6_000_000, 8_000_000, 2_000_000, 1, 2_000_000);
    writer.names(&[Name { array: None, text: "Step".into() }]).unwrap();
    writer.profile(0, &profile).unwrap();
    writer.finish(&End { elapsed_ns: 10_000_000, ..End::default() }).unwrap();
    let scratch = scratch.report();
    let Some(open) = Open::new(&scratch) else { return };
    assert_eq!(open.column("profile-table", "kind"), ["Step", "measure"]);
    assert_eq!(open.column("profile-table", "calls"), [12, 1]);
    assert!(open.text("document.getElementById('timeline').textContent").contains("drawn from profiles"));
    open.assert_no_complaints();

    let empty = Scratch::new("empty");
    Writer::create(&empty.trace(), &record(Shape::Arrays)).unwrap().finish(&End::default()).unwrap();
    let empty = empty.report();
    open.go(&empty.page());
    open.wait_for("performance.getEntriesByName('caribou-rendered').length > 0");
    assert_eq!(open.number("document.querySelectorAll('p.nothing').length"), 7.0);
    assert_eq!(open.number("document.querySelectorAll('#timeline-canvas').length"), 0.0);
    open.assert_no_complaints();
}

#[test]
fn without_scripts_all_figures_are_there() {
    let scratch = Scratch::generated("static", 20_000);
    let Some(open) = Open::blank() else { return };
    open.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    open.go(&scratch.page());
    assert_eq!(open.number("document.querySelectorAll('.js').length"), 0.0);
    assert_eq!(open.column("chunk-table", "chunk").len(), 32);
    assert!(
        open.number("document.querySelector('#timeline-static svg').getBoundingClientRect().height") > 100.0
    );
    assert_eq!(
        open.text("getComputedStyle(document.getElementById('zoom-in').parentElement).display"),
        "none"
    );
}

#[test]
fn every_table_and_control_can_be_named_and_reached() {
    let scratch = Scratch::generated("access", 20_000);
    let Some(open) = Open::new(&scratch) else { return };
    let none = |what: &str, selector: &str| {
        assert_eq!(open.number(&format!("document.querySelectorAll(\"{selector}\").length")), 0.0, "{what}");
    };
    none("a table without a caption", "table:not(:has(caption))");
    none("a head without a scope", "th:not([scope])");
    none("a picture without a name", "svg[role=img]:not([aria-label])");
    none("a picture that is neither named nor hidden", "svg:not([role=img], [aria-hidden], svg svg)");
    none("a section without a title", "section:not([aria-labelledby])");
    none("a link to nowhere", "nav a:not([href^='#'])");
    let unnamed =
        "[...document.querySelectorAll('input, select')].filter((e) => e.labels.length === 0).length";
    assert_eq!(open.number(unnamed), 0.0);
    let levels = open.value("[...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1]))");
    let levels: Vec<u8> = serde_json::from_value(levels).unwrap();
    assert_eq!(levels[0], 1);
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "no level is left out: {levels:?}");
    open.assert_no_complaints();
}

#[test]
fn it_can_be_looked_at_in_light_and_dark_in_any_window() {
    let scratch = Scratch::generated("shots", 60_000);
    let Some(open) = Open::new(&scratch) else { return };
    let dir = std::env::temp_dir().join("caribou-report-pictures");
    std::fs::create_dir_all(&dir).unwrap();
    let mut sizes = Vec::new();
    for wide in [1400, 2200] {
        open.resize(wide);
        let right = |what: &str| {
            open.number(&format!("document.querySelector('{what}').getBoundingClientRect().right"))
        };
        for what in ["#timeline-canvas", "#stack", "#heat", "#chunk-map", "#rank-bars"] {
            let unused = f64::from(wide) - right(what);
            assert!((0.0..60.0).contains(&unused), "{what}: {unused} of {wide} are unused");
        }
        assert!(open.number("document.documentElement.scrollWidth") <= f64::from(wide));
        let words = open.number("document.querySelector('#stack text').getBoundingClientRect().height");
        assert!((8.0..20.0).contains(&words), "words are as large as ever: {words}");
        for theme in ["light", "dark"] {
            open.frame();
            let picture = open.picture();
            std::fs::write(dir.join(format!("report-{wide}-{theme}.png")), &picture).unwrap();
            sizes.push(picture.len());
            open.click("theme");
        }
    }
    assert!(sizes.iter().all(|&size| size > 50_000) && sizes[0] != sizes[1], "{sizes:?}");
    open.assert_no_complaints();
}
