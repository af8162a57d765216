//! Reads the load-balancing data of vt in JSON:
//!
//! `{"phases": [{"id": 0, "tasks": [{"time": 0.5, "entity": {"id": 7, "migratable": true}}]}]}`

use serde::Deserialize;

use super::{RecordedLoadsError, Task};

/// Number of characters of the JSON reader's message that are shown.
const SHOWN_MAX: usize = 200;

#[derive(Deserialize)]
struct File {
    phases: Vec<Phase>,
}

#[derive(Deserialize)]
struct Phase {
    id: u64,
    tasks: Vec<TimedTask>,
}

#[derive(Deserialize)]
struct TimedTask {
    entity: Entity,
    /// Seconds.
    time: f64,
}

#[derive(Deserialize)]
struct Entity {
    id: Option<u64>,
    /// Instead of an id, in files that were not written by a run.
    seq_id: Option<u64>,
    migratable: bool,
}

/// Passes all tasks of a file to `take`, each with its place.
pub(super) fn read(
    file: &str,
    bytes: &[u8],
    take: &mut dyn FnMut(&str, Task) -> Result<(), RecordedLoadsError>,
) -> Result<(), RecordedLoadsError> {
    let parsed: File = serde_json::from_slice(bytes).map_err(|error| {
        // The message may repeat text of the file of any length.
        let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
        let message: String = error.to_string().chars().map(plain).take(SHOWN_MAX).collect();
        let what = format!("no LB data of vt: {message}");
        RecordedLoadsError { place: format!("{file}:{}", error.line()), what }
    })?;
    for (number, phase) in parsed.phases.iter().enumerate() {
        for (position, task) in phase.tasks.iter().enumerate() {
            let place = format!("{file}: phases[{number}].tasks[{position}]");
            let Some(object) = task.entity.id.or(task.entity.seq_id) else {
                let what = "no id, expected entity.id or entity.seq_id".to_owned();
                return Err(RecordedLoadsError { place, what });
            };
            let migratable = task.entity.migratable;
            take(&place, Task { phase: phase.id, object, seconds: task.time, migratable })?;
        }
    }
    Ok(())
}
