//! Opens a report in a browser, and operates the page.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::scratch::Scratch;

/// An open page.
pub(crate) struct Open {
    browser: RefCell<Browser>,
}

/// Events that a page must not cause: exceptions and console output.
const COMPLAINTS: [&str; 3] = ["Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"];

impl Open {
    /// Opens the report of a trace; none if there is no browser.
    pub(crate) fn new(scratch: &Scratch) -> Option<Open> {
        let open = Open::blank()?;
        open.go(&scratch.page());
        open.wait_for("performance.getEntriesByName('caribou-rendered').length > 0");
        Some(open)
    }

    pub(crate) fn blank() -> Option<Open> {
        let browser = Browser::start();
        if browser.is_none() {
            println!("skipped: no chromium, chromium-browser or google-chrome in PATH");
        }
        browser.map(|browser| Open { browser: RefCell::new(browser) })
    }

    /// Calls a method of the DevTools protocol.
    pub(crate) fn call(&self, method: &str, parameters: Value) -> Value {
        self.browser.borrow_mut().call(method, parameters)
    }

    pub(crate) fn go(&self, page: &Path) {
        self.browser.borrow_mut().events.retain(is_complaint);
        self.call("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        self.browser.borrow_mut().wait_for("Page.loadEventFired");
    }

    fn complaints(&self) -> Vec<Value> {
        // The answer comes after all events before it.
        self.value("0");
        self.browser.borrow().events.iter().filter(|event| is_complaint(event)).cloned().collect()
    }

    /// The value of an expression.
    pub(crate) fn value(&self, expression: &str) -> Value {
        let answer =
            self.call("Runtime.evaluate", json!({ "expression": format!("JSON.stringify({expression})") }));
        answer["result"]["value"].as_str().map_or(Value::Null, |json| serde_json::from_str(json).unwrap())
    }

    pub(crate) fn number(&self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    pub(crate) fn text(&self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_else(|| panic!("{expression} is no text")).to_owned()
    }

    pub(crate) fn wait_for(&self, condition: &str) {
        for _ in 0..600 {
            if self.value(&format!("!!({condition})")) == true {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("never: {condition}; {:?}", self.complaints());
    }

    /// Waits until the script has finished drawing.
    pub(crate) fn frame(&self) {
        self.value("(window.drawn = false, requestAnimationFrame(() => requestAnimationFrame(() => window.drawn = true)), 0)");
        self.wait_for("window.drawn");
    }

    pub(crate) fn range(&self) -> (f64, f64) {
        self.frame();
        let of = |end: &str| self.number(&format!("Number(document.getElementById('range').dataset.{end})"));
        (of("from"), of("to"))
    }

    pub(crate) fn click(&self, id: &str) {
        let middle = self.value(&format!(
            "(() => {{ const e = document.getElementById('{id}'); e.scrollIntoView({{block:'center',behavior:'instant'}});
              const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        let (x, y) = (middle[0].as_f64().unwrap(), middle[1].as_f64().unwrap());
        for what in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(what, x, y, 0.0);
        }
    }

    /// The values of a column in the visible rows, by the head of the column.
    pub(crate) fn column(&self, table: &str, head: &str) -> Vec<Value> {
        let script = format!(
            "(() => {{ const t = document.getElementById('{table}');
              const c = [...t.tHead.rows[0].cells].findIndex((h) => h.textContent === '{head}');
              return [...t.tBodies[0].rows].filter((r) => !r.hidden).map((r) => r.cells[c].dataset.v === undefined
                ? r.cells[c].textContent : Number(r.cells[c].dataset.v)); }})()"
        );
        self.value(&script).as_array().unwrap().clone()
    }

    pub(crate) fn assert_no_complaints(&self) {
        let complaints = self.complaints();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    /// Turns the wheel with the control key held, as a pinch does.
    pub(crate) fn pinch(&self, x: f64, y: f64, wheel: f64) {
        const CONTROL: u32 = 2;
        self.mouse_with(CONTROL, "mouseWheel", x, y, wheel);
    }

    /// Sends `mouseMoved`, `mousePressed`, `mouseReleased` or `mouseWheel`.
    pub(crate) fn mouse(&self, what: &str, x: f64, y: f64, wheel: f64) {
        self.mouse_with(0, what, x, y, wheel);
    }

    fn mouse_with(&self, modifiers: u32, what: &str, x: f64, y: f64, wheel: f64) {
        let left = u32::from(matches!(what, "mousePressed" | "mouseReleased"));
        let button = if left == 1 { "left" } else { "none" };
        self.call(
            "Input.dispatchMouseEvent",
            json!({
                "type": what, "x": x, "y": y, "modifiers": modifiers, "button": button, "buttons": left,
                "clickCount": left, "deltaX": 0.0, "deltaY": wheel,
            }),
        );
    }

    /// Presses a key, by its name.
    pub(crate) fn strike(&self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Home" => 36,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            other => other.chars().next().map_or(0, |first| first.to_ascii_uppercase() as u32),
        };
        let text = match key {
            "Enter" => "\r",
            letter if letter.len() == 1 => letter,
            _ => "",
        };
        for what in ["keyDown", "keyUp"] {
            let text = if what == "keyDown" { text } else { "" };
            let event = json!({ "type": what, "key": key, "text": text, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// The page as a picture, in PNG.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        BASE64_STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }

    pub(crate) fn press(&self, key: &str) {
        self.value(&format!(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))"
        ));
    }

    pub(crate) fn readout(&self) -> String {
        self.text("document.getElementById('readout').textContent")
    }

    /// Sets the width of the window, and makes it as tall as the page.
    pub(crate) fn resize(&self, width: u32) {
        let size = |height: f64| {
            let size =
                json!({ "width": width, "height": height as u32, "deviceScaleFactor": 1.0, "mobile": false });
            self.call("Emulation.setDeviceMetricsOverride", size);
        };
        size(1000.0);
        size(self.number("document.documentElement.scrollHeight"));
        self.frame();
    }

    /// A position in the timeline, from fractions of its width and height.
    pub(crate) fn place(&self, right: f64, down: f64) -> (f64, f64) {
        self.value(
            "document.getElementById('timeline-canvas').scrollIntoView({block:'center',behavior:'instant'})",
        );
        let of = |side: &str| {
            self.number(&format!("document.getElementById('timeline-canvas').getBoundingClientRect().{side}"))
        };
        (of("left") + 96.0 + right * (of("width") - 104.0), of("top") + down * (of("height") - 24.0))
    }
}

fn is_complaint(event: &Value) -> bool {
    COMPLAINTS.iter().any(|complaint| event["method"] == *complaint)
}
