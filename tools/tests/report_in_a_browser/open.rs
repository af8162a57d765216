//! A report that is open in a browser, and what can be done to it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headless_chrome::protocol::cdp::types::Event as Told;
use headless_chrome::protocol::cdp::{Emulation, Input};
use headless_chrome::{Browser, LaunchOptions, Tab};
use serde_json::Value;

use crate::scratch::Scratch;

/// A page that is open, and what the browser complained about.
pub(crate) struct Open {
    pub(crate) tab: Arc<Tab>,
    complaints: Arc<Mutex<Vec<String>>>,
    _browser: Browser,
}

impl Open {
    /// Opens the report of a trace; nothing if there is no browser.
    pub(crate) fn new(scratch: &Scratch) -> Option<Open> {
        let open = Open::blank()?;
        open.go(&scratch.page());
        open.wait_for("performance.getEntriesByName('caribou-rendered').length > 0");
        Some(open)
    }

    pub(crate) fn blank() -> Option<Open> {
        let Some(program) = browser() else {
            println!("skipped: no chromium, chromium-browser or google-chrome in PATH");
            return None;
        };
        let options = LaunchOptions {
            path: Some(program),
            // The page is ours, and a sandbox cannot be had as root.
            sandbox: false,
            window_size: Some((1280, 1000)),
            idle_browser_timeout: Duration::from_secs(300),
            args: vec!["--disable-dev-shm-usage".as_ref()],
            ..LaunchOptions::default()
        };
        let browser = Browser::new(options).unwrap();
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(Duration::from_secs(120));
        tab.enable_log().unwrap().enable_runtime().unwrap();
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let heard = complaints.clone();
        let listen = move |told: &Told| match told {
            Told::RuntimeExceptionThrown(thrown) => heard.lock().unwrap().push(format!("{thrown:?}")),
            Told::LogEntryAdded(entry) => heard.lock().unwrap().push(format!("{entry:?}")),
            Told::RuntimeConsoleAPICalled(call) => heard.lock().unwrap().push(format!("{call:?}")),
            _ => {}
        };
        tab.add_event_listener(Arc::new(listen)).unwrap();
        Some(Open { tab, complaints, _browser: browser })
    }

    pub(crate) fn go(&self, page: &Path) {
        let url = format!("file://{}", page.display());
        self.tab.navigate_to(&url).unwrap().wait_until_navigated().unwrap();
    }

    /// The value of an expression.
    pub(crate) fn value(&self, expression: &str) -> Value {
        let json = self.tab.evaluate(&format!("JSON.stringify({expression})"), false).unwrap().value;
        json.and_then(|json| json.as_str().map(|json| serde_json::from_str(json).unwrap()))
            .unwrap_or(Value::Null)
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
        panic!("never: {condition}; {:?}", self.complaints.lock().unwrap());
    }

    /// The script has drawn what it was told.
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
        self.value(&format!(
            "document.getElementById('{id}').scrollIntoView({{block:'center',behavior:'instant'}})"
        ));
        self.tab.find_element(&format!("#{id}")).unwrap().click().unwrap();
    }

    /// The values of a column, by its head, of the rows that are shown.
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
        let complaints = self.complaints.lock().unwrap();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    /// Turns the wheel with the control key held, as a pinch does.
    pub(crate) fn pinch(&self, x: f64, y: f64, wheel: f64) {
        const CONTROL: u32 = 2;
        self.mouse_with(CONTROL, Input::DispatchMouseEventTypeOption::MouseWheel, x, y, wheel);
    }

    pub(crate) fn mouse(&self, what: Input::DispatchMouseEventTypeOption, x: f64, y: f64, wheel: f64) {
        self.mouse_with(0, what, x, y, wheel);
    }

    fn mouse_with(
        &self,
        modifiers: u32,
        what: Input::DispatchMouseEventTypeOption,
        x: f64,
        y: f64,
        wheel: f64,
    ) {
        let left = matches!(
            what,
            Input::DispatchMouseEventTypeOption::MousePressed
                | Input::DispatchMouseEventTypeOption::MouseReleased
        );
        self.tab
            .call_method(Input::DispatchMouseEvent {
                Type: what,
                x,
                y,
                modifiers: Some(modifiers),
                timestamp: None,
                button: left.then_some(Input::MouseButton::Left),
                buttons: Some(u32::from(left)),
                click_count: left.then_some(1),
                force: None,
                tangential_pressure: None,
                tilt_x: None,
                tilt_y: None,
                twist: None,
                delta_x: Some(0.0),
                delta_y: Some(wheel),
                pointer_Type: None,
            })
            .unwrap();
    }

    pub(crate) fn press(&self, key: &str) {
        self.value(&format!(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))"
        ));
    }

    pub(crate) fn readout(&self) -> String {
        self.text("document.getElementById('readout').textContent")
    }

    /// Makes the window so wide, and as tall as the page.
    pub(crate) fn resize(&self, width: u32) {
        let size = |height: f64| {
            self.tab
                .call_method(Emulation::SetDeviceMetricsOverride {
                    width,
                    height: height as u32,
                    device_scale_factor: 1.0,
                    mobile: false,
                    scale: None,
                    screen_width: None,
                    screen_height: None,
                    position_x: None,
                    position_y: None,
                    dont_set_visible_size: None,
                    screen_orientation: None,
                    viewport: None,
                    display_feature: None,
                    device_posture: None,
                })
                .unwrap();
        };
        size(1000.0);
        size(self.number("document.documentElement.scrollHeight"));
        self.frame();
    }

    /// A place in the timeline, as parts of its width and height.
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

pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    all.into_iter().find(|file| file.is_file())
}
