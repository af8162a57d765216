//! Controls a browser by the DevTools protocol through a pipe: messages in JSON, each ended by a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Directory of the browser's profile. Dropping the browser removes it.
    profile: PathBuf,
    /// Number of the last call.
    calls: u64,
    /// Session of the page, once there is a page.
    session: Option<String>,
    /// Events that were not yet taken.
    pub(crate) events: Vec<Value>,
}

impl Browser {
    /// Starts a browser with an empty page; none if no browser is installed.
    pub(crate) fn start() -> Option<Browser> {
        let program = program()?;
        static STARTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = STARTED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("caribou-browser-{}-{number}", std::process::id()));
        // The browser reads from descriptor 3 and writes to 4. Root cannot use its sandbox, and the page is trusted.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-gpu", "--window-size=1280,1000"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut browser = Browser { process, to, from, profile, calls: 0, session: None, events: Vec::new() };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let page = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", page);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the browser and returns the answer. Keeps the events that come before the answer.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method });
        call["params"] = parameters;
        if let Some(session) = &self.session {
            call["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{call}\0").as_bytes()).unwrap();
        loop {
            let mut told = self.receive();
            if told["id"] == self.calls {
                assert!(told["error"].is_null(), "{method}: {}", told["error"]);
                return told["result"].take();
            }
            self.events.push(told);
        }
    }

    /// Waits for an event of the browser.
    pub(crate) fn wait_for(&mut self, event: &str) {
        while !self.events.iter().any(|told| told["method"] == event) {
            let told = self.receive();
            self.events.push(told);
        }
    }

    fn receive(&mut self) -> Value {
        let mut told = Vec::new();
        self.from.read_until(0, &mut told).unwrap();
        assert_eq!(told.pop(), Some(0), "the browser has gone");
        serde_json::from_slice(&told).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = std::env::split_paths(&path).flat_map(|dir| names.map(|name| Path::new(&dir).join(name)));
    all.into_iter().find(|file| file.is_file())
}
