//! Runs the event loop of `caribou top`: reads keys, receives answers and draws the screen. One thread per program
//! polls it, so that a slow program delays neither the others nor the keys. The threads end with the command.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use caribou::monitor::Status;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::{DefaultTerminal, try_init, try_restore};

use super::screen;
use super::source::Source;
use super::view::View;
use super::watch::Watch;

/// Longest time until an answer is shown. Keys are handled at once.
const LOOK: Duration = Duration::from_millis(50);

/// The number of a program, and its answer.
type Answer = (usize, Result<Status, String>);

/// Shows the run until the user quits.
pub(super) fn show(watch: Watch, sources: Vec<Source>, interval: Duration) -> io::Result<()> {
    let (sender, answers) = channel();
    for (number, source) in sources.into_iter().enumerate() {
        let sender = sender.clone();
        let name = format!("ask-{}", source.address);
        thread::Builder::new().name(name).spawn(move || ask(number, &source, interval, &sender))?;
    }
    // The panic hook that `try_init` installs also restores the terminal.
    let terminal = try_init();
    let shown = terminal.and_then(|terminal| until_quit(terminal, watch, &answers));
    try_restore().and(shown)
}

fn ask(number: usize, source: &Source, interval: Duration, sender: &Sender<Answer>) {
    loop {
        thread::sleep(interval);
        if sender.send((number, source.ask())).is_err() {
            return;
        }
    }
}

fn until_quit(mut terminal: DefaultTerminal, mut watch: Watch, answers: &Receiver<Answer>) -> io::Result<()> {
    let mut view = View::default();
    let mut changed = true;
    let mut scrollable = 0;
    while !view.quit {
        if changed {
            terminal.draw(|frame| scrollable = screen::draw(frame, &watch, &view))?;
        }
        changed = false;
        if event::poll(LOOK)? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => view.press(key, scrollable),
                _ => {}
            }
            // Any event needs a redraw; a change of the terminal's size is an event too.
            changed = true;
        }
        for (number, answer) in answers.try_iter() {
            // While paused, answers are received and dropped, so that they do not pile up.
            if !view.paused {
                watch.update(number, answer);
                changed = true;
            }
        }
    }
    Ok(())
}
