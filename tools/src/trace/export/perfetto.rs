//! Writes Perfetto's TrackEvent protobuf: a process per rank, a thread per worker, and tracks of counters.
//!
//! Packets are written one by one. Memory has only messages in flight and the current slice's packets, sorted by time.

pub(super) mod proto;

use std::io::{self, Write};

use prost::Message;
use rustc_hash::FxHashMap;
use trace_reader::Trace;

use self::proto::{
    CounterDescriptor, DebugAnnotation, EventType, Interned, InternedData, ProcessDescriptor,
    ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use super::names::Names;
use super::rows::Row;
use super::viewer::{ARGUMENTS, Arguments, Arrow, Count, NAMES, Point, Slice, Track, Value, Viewer};

/// Sequence number of all packets, as they have one writer.
const SEQUENCE: u32 = 1;
const NAMES_BEGIN: u32 = 1;
const NAMES_USED: u32 = 2;
/// Pid and track of the run as a whole.
const RUN: (i32, u64) = (1, 1);
/// Pid of rank 0. Pids are invented, because ranks may share a process of the system.
const FIRST_PID: i32 = 10;

/// Writes packets.
pub(super) struct Perfetto<'w> {
    out: &'w mut dyn Write,
    /// Encoded packets of this turn.
    bytes: Vec<u8>,
    /// Time of each of these packets, and its offset.
    held: Vec<(u64, usize)>,
    names: FxHashMap<String, u64>,
    counters: FxHashMap<(Option<u32>, String), u64>,
}

impl<'w> Perfetto<'w> {
    /// Writes the names and the tracks of all ranks and workers.
    pub(super) fn new(
        trace: &Trace,
        names: &Names,
        rows: &[Row],
        out: &'w mut dyn Write,
    ) -> io::Result<Perfetto<'w>> {
        let counters = FxHashMap::default();
        let mut perfetto =
            Perfetto { out, bytes: Vec::new(), held: Vec::new(), names: FxHashMap::default(), counters };
        let all = NAMES.into_iter().map(str::to_owned).chain(names.all().iter().cloned());
        let mut event_names: Vec<Interned> = Vec::new();
        for name in all.chain([super::names::UNKNOWN.to_owned()]) {
            let next = event_names.len() as u64 + 1;
            if *perfetto.names.entry(name.clone()).or_insert(next) == next {
                event_names.push(interned(next, &name));
            }
        }
        let debug_annotation_names = (1..).zip(ARGUMENTS).map(|(iid, name)| interned(iid, name)).collect();
        perfetto.packet(&TracePacket {
            interned_data: Some(InternedData { event_names, debug_annotation_names }),
            sequence_flags: Some(NAMES_BEGIN),
            ..packet()
        })?;
        perfetto.tracks(trace, rows)?;
        Ok(perfetto)
    }

    fn tracks(&mut self, trace: &Trace, rows: &[Row]) -> io::Result<()> {
        let process = |pid, name| ProcessDescriptor {
            pid: Some(pid),
            legacy_sort_index: Some(pid),
            process_name: Some(name),
        };
        let of_run = process(RUN.0, "run".to_owned());
        self.track(TrackDescriptor { uuid: Some(RUN.1), process: Some(of_run), ..Default::default() })?;
        let digits = trace.ranks.last().map_or(1, |rank| rank.rank.to_string().len()).max(2);
        for row in rows {
            let pid = pid_of(row.rank);
            if row.worker == 0 {
                let host =
                    trace.ranks.iter().find(|rank| rank.rank == row.rank).map(|rank| rank.host.as_str());
                let name = format!("rank {:0digits$} @ {}", row.rank, host.unwrap_or(""));
                let of_rank = process(pid, name);
                let uuid = Some(track_of_rank(row.rank));
                self.track(TrackDescriptor { uuid, process: Some(of_rank), ..Default::default() })?;
            }
            let thread = ThreadDescriptor {
                pid: Some(pid),
                tid: Some(tid_of(row.worker)),
                legacy_sort_index: Some(tid_of(row.worker)),
                thread_name: Some(format!("worker {}", row.worker)),
            };
            let (uuid, parent_uuid) = (Some(track_of_worker(*row)), Some(track_of_rank(row.rank)));
            self.track(TrackDescriptor { uuid, parent_uuid, thread: Some(thread), ..Default::default() })?;
        }
        Ok(())
    }

    fn track(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.packet(&TracePacket { track_descriptor: Some(track), ..packet() })
    }

    /// Writes a packet without a time, before the packets of the turn.
    fn packet(&mut self, packet: &TracePacket) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode(packet, &mut bytes);
        self.out.write_all(&bytes)
    }

    fn event(&mut self, at_ns: u64, event: TrackEvent, dropped: bool) {
        self.held.push((at_ns, self.bytes.len()));
        let packet = TracePacket {
            timestamp: Some(at_ns),
            track_event: Some(event),
            sequence_flags: Some(NAMES_USED),
            previous_packet_dropped: dropped.then_some(true),
            ..packet()
        };
        encode(&packet, &mut self.bytes);
    }

    /// An event on a track. Its name is a number if the name is interned.
    fn named(&self, kind: EventType, track: u64, name: &str) -> TrackEvent {
        let name_iid = self.names.get(name).copied();
        let name = if name_iid.is_none() { Some(name.to_owned()) } else { None };
        TrackEvent {
            r#type: Some(kind as i32),
            track_uuid: Some(track),
            name_iid,
            name,
            ..Default::default()
        }
    }

    fn end(&mut self, track: u64, at_ns: u64, cpu_ns: Option<u64>) {
        let cpu = cpu_ns.map(|ns| ("cpu_us", Value::Number(ns as f64 / 1e3)));
        let event = TrackEvent {
            r#type: Some(EventType::SliceEnd as i32),
            track_uuid: Some(track),
            debug_annotations: annotations(&Vec::from_iter(cpu)),
            ..Default::default()
        };
        self.event(at_ns, event, false);
    }
}

impl Viewer for Perfetto<'_> {
    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let track = track_of_worker(slice.row);
        let mut begin = self.named(EventType::SliceBegin, track, slice.name);
        begin.debug_annotations = annotations(&slice.arguments);
        begin.terminating_flow_ids.clone_from(&slice.arrows);
        self.event(slice.begin_ns, begin, false);
        let mut open: Vec<u64> = Vec::new();
        for &(begin_ns, end_ns, name) in &slice.spans {
            while let Some(end_ns) = open.pop_if(|end_ns| *end_ns <= begin_ns) {
                self.end(track, end_ns, None);
            }
            let begin = self.named(EventType::SliceBegin, track, name);
            self.event(begin_ns, begin, false);
            open.push(end_ns);
        }
        while let Some(end_ns) = open.pop() {
            self.end(track, end_ns, None);
        }
        self.end(track, slice.end_ns, slice.cpu_ns);
        Ok(())
    }

    fn point(&mut self, point: &Point<'_>) -> io::Result<()> {
        let track = match point.place {
            Track::Run => RUN.1,
            Track::Rank(rank) => track_of_rank(rank),
            Track::Worker(row) => track_of_worker(row),
        };
        let mut event = self.named(EventType::Instant, track, point.name);
        event.debug_annotations = annotations(&point.arguments);
        match point.arrow {
            Some(Arrow::Begins(id) | Arrow::Passes(id)) => event.flow_ids.push(id),
            Some(Arrow::Ends(id)) => event.terminating_flow_ids.push(id),
            None => {}
        }
        self.event(point.at_ns, event, point.dropped);
        Ok(())
    }

    fn count(&mut self, count: &Count<'_>) -> io::Result<()> {
        let (rank, parent) = match count.place {
            Track::Run => (None, RUN.1),
            Track::Rank(rank) | Track::Worker(Row { rank, .. }) => (Some(rank), track_of_rank(rank)),
        };
        let key = (rank, count.name.to_owned());
        let track = match self.counters.get(&key) {
            Some(&track) => track,
            None => {
                let track = COUNTERS + self.counters.len() as u64;
                let unit_name = (!count.unit.is_empty()).then(|| count.unit.to_owned());
                self.track(TrackDescriptor {
                    uuid: Some(track),
                    name: Some(count.name.to_owned()),
                    parent_uuid: Some(parent),
                    counter: Some(CounterDescriptor { unit_name }),
                    ..Default::default()
                })?;
                self.counters.insert(key, track);
                track
            }
        };
        let event = TrackEvent {
            r#type: Some(EventType::Counter as i32),
            track_uuid: Some(track),
            double_counter_value: Some(count.value),
            ..Default::default()
        };
        self.event(count.at_ns, event, false);
        Ok(())
    }

    fn end_slice(&mut self) -> io::Result<()> {
        let end = self.bytes.len();
        let ends = self.held.iter().skip(1).map(|&(_, begin)| begin).chain([end]);
        let mut packets: Vec<_> =
            self.held.iter().zip(ends).map(|(&(at_ns, begin), end)| (at_ns, begin..end)).collect();
        // The sort is stable: packets of one time keep their order.
        packets.sort_by_key(|(at_ns, _)| *at_ns);
        packets.into_iter().try_for_each(|(_, packet)| self.out.write_all(&self.bytes[packet]))?;
        self.bytes.clear();
        self.held.clear();
        Ok(())
    }
}

/// Appends a packet as field 1 of the file.
pub(super) fn encode(packet: &TracePacket, bytes: &mut Vec<u8>) {
    bytes.push(0x0a);
    packet.encode_length_delimited(bytes).expect("a Vec grows");
}

fn packet() -> TracePacket {
    TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..Default::default() }
}

fn interned(iid: u64, name: &str) -> Interned {
    Interned { iid: Some(iid), name: Some(name.to_owned()) }
}

fn annotations(arguments: &Arguments) -> Vec<DebugAnnotation> {
    arguments.iter().map(|(name, value)| annotation(name, value)).collect()
}

fn annotation(name: &'static str, value: &Value) -> DebugAnnotation {
    let position = ARGUMENTS.iter().position(|&other| other == name);
    let named = match position {
        Some(position) => DebugAnnotation { name_iid: Some(position as u64 + 1), ..Default::default() },
        None => DebugAnnotation { name: Some(name.to_owned()), ..Default::default() },
    };
    match value {
        Value::Text(text) => DebugAnnotation { string_value: Some(text.clone()), ..named },
        Value::Count(count) => DebugAnnotation { uint_value: Some(*count), ..named },
        Value::Number(number) => DebugAnnotation { double_value: Some(*number), ..named },
    }
}

/// First track of counters. Tracks of ranks and workers have lower numbers.
const COUNTERS: u64 = 1 << 62;

fn track_of_rank(rank: u32) -> u64 {
    1 << 60 | u64::from(rank)
}

fn track_of_worker(row: Row) -> u64 {
    1 << 61 | u64::from(row.rank) << 24 | u64::from(row.worker)
}

fn pid_of(rank: u32) -> i32 {
    i32::try_from(rank).unwrap_or(i32::MAX).saturating_add(FIRST_PID)
}

fn tid_of(worker: u32) -> i32 {
    i32::try_from(worker).unwrap_or(i32::MAX).saturating_add(1)
}
