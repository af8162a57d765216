//! Tests the Perfetto export by decoding it.

use std::collections::BTreeMap;

use prost::Message;
use trace_reader::Trace;

use super::*;
use crate::trace::export::perfetto::encode;
use crate::trace::export::perfetto::proto::{
    CounterDescriptor, DebugAnnotation, EventType, Interned, InternedData, ProcessDescriptor,
    ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};

/// The packets of a file.
#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

/// The contents of a file as a viewer shows them.
#[derive(Debug, Default)]
struct Seen {
    /// Time in ns and number of slices, by process and name.
    slices: BTreeMap<(i32, String), (u64, u64)>,
    /// Times of the points of each arrow.
    arrows: BTreeMap<u64, Vec<u64>>,
    points: BTreeMap<String, u64>,
    /// Number of values of each counter, by name.
    counts: BTreeMap<String, u64>,
}

/// Reads a file strictly. Tracks and names must be defined before they are used. Each slice must have an end on its
/// track, and each arrow one begin and at least one later end.
fn read(bytes: &[u8]) -> Seen {
    let mut packets = File::decode(bytes).unwrap().packet;
    let mut names = BTreeMap::new();
    let (mut pid_of_track, mut counters) = (BTreeMap::new(), BTreeMap::new());
    for packet in &packets {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(data) = &packet.interned_data {
            assert_eq!(packet.sequence_flags, Some(1));
            names.extend(data.event_names.iter().map(|name| (name.iid, name.name.clone().unwrap())));
        }
        if let Some(track) = &packet.track_descriptor {
            let pid = track.process.as_ref().map(|process| process.pid);
            let pid = pid.or(track.thread.as_ref().map(|thread| thread.pid)).flatten();
            let pid = pid.unwrap_or_else(|| pid_of_track[&track.parent_uuid]);
            assert_eq!(pid_of_track.insert(track.uuid, pid), None, "a track is described once");
            if track.counter.is_some() {
                counters.insert(track.uuid, track.name.clone().unwrap());
            }
        }
        let track = packet.track_event.as_ref().map(|event| event.track_uuid);
        assert!(track.is_none_or(|track| pid_of_track.contains_key(&track)), "{packet:?}");
    }
    packets.retain(|packet| packet.track_event.is_some());
    let mut last_ns = BTreeMap::new();
    for (packet, event) in packets.iter().filter_map(|packet| Some((packet, packet.track_event.as_ref()?))) {
        if event.r#type() == EventType::Counter {
            // Several workers write to the track of one counter.
            continue;
        }
        let before_ns = last_ns.insert(event.track_uuid, packet.timestamp);
        assert!(before_ns <= Some(packet.timestamp), "a track is told in the order of time");
    }
    packets.sort_by_key(|packet| packet.timestamp);
    let (mut seen, mut open) = (Seen::default(), BTreeMap::new());
    let (mut begins, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for packet in packets {
        let (at_ns, event) = (packet.timestamp.unwrap(), packet.track_event.unwrap());
        let name = event.name.clone().or_else(|| event.name_iid.map(|iid| names[&Some(iid)].clone()));
        let stack: &mut Vec<(u64, String)> = open.entry(event.track_uuid).or_default();
        match event.r#type() {
            EventType::SliceBegin => stack.push((at_ns, name.unwrap())),
            EventType::SliceEnd => {
                let (begin_ns, name) = stack.pop().expect("a slice ends that began");
                let slice = seen.slices.entry((pid_of_track[&event.track_uuid], name)).or_default();
                *slice = (slice.0 + at_ns - begin_ns, slice.1 + 1);
            }
            EventType::Instant => *seen.points.entry(name.unwrap()).or_default() += 1,
            EventType::Counter => {
                *seen.counts.entry(counters[&event.track_uuid].clone()).or_default() += 1;
                assert!(event.double_counter_value.is_some());
            }
            EventType::Unspecified => panic!("an event of no type"),
        }
        event.flow_ids.iter().for_each(|&id| begins.entry(id).or_insert_with(Vec::new).push(at_ns));
        event.terminating_flow_ids.iter().for_each(|&id| ends.entry(id).or_insert_with(Vec::new).push(at_ns));
    }
    assert!(open.values().all(Vec::is_empty), "every slice has its end");
    for (id, to_ns) in ends {
        let mut way = begins.remove(&id).expect("an arrow has a beginning");
        assert_eq!(to_ns.len(), 1, "an arrow has one end");
        way.extend(to_ns);
        assert!(way.is_sorted(), "an arrow does not run backwards");
        seen.arrows.insert(id, way);
    }
    assert!(begins.is_empty(), "an arrow has an end");
    seen
}

pub(super) fn check_perfetto(dir: &Scratch, out: &Scratch, flows: &str) {
    let trace = Trace::open(dir.path()).unwrap();
    export(dir, "perfetto", out, &["--flows", flows]).unwrap();
    let seen = read(&std::fs::read(file(out)).unwrap());
    let total = totals(&trace);
    for ((rank, name), expected) in &total {
        assert_eq!(seen.slices[&(*rank as i32 + 10, name.clone())], *expected, "{name} on rank {rank}");
    }
}

#[test]
fn a_made_up_run_is_exported_to_perfetto() {
    let (dir, out) = (generated("perfetto-ring", 20_000), Scratch::new("perfetto-ring-out"));
    let trace = Trace::open(dir.path()).unwrap();
    let moved: u64 = trace.syncs.iter().map(|sync| sync.moved).sum();
    assert!(moved > 0);
    check_perfetto(&dir, &out, "waits");
    let seen = read(&std::fs::read(file(&out)).unwrap());
    let halos: u64 =
        seen.slices.iter().filter(|((_, name), _)| name == "Ring::Halo").map(|(_, (_, n))| n).sum();
    let passing = seen.arrows.values().filter(|way| way.len() == 3).count() as u64;
    assert_eq!(passing, moved, "each migration comes to where the chunk ran first");
    assert!(
        seen.arrows.len() as u64 > moved && (seen.arrows.len() as u64) < halos / 4,
        "{}",
        seen.arrows.len()
    );
    assert_eq!(seen.points["migrate_in"], moved);
    assert_eq!(seen.points["LB step 0"], 1);
    for counter in ["imbalance", "load cpu", "steal", "vCPU speed", "busy", "residual"] {
        assert!(seen.counts[counter] > 0, "{counter}");
    }
    check_perfetto(&dir, &out, "all");
    let all = read(&std::fs::read(file(&out)).unwrap());
    assert_eq!(all.arrows.len() as u64, halos + moved);
    check_perfetto(&dir, &out, "none");
    assert!(read(&std::fs::read(file(&out)).unwrap()).arrows.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_run_is_exported_to_perfetto(workers in prop::collection::vec(steps(), 3)) {
        let (dir, out) = (Scratch::new("perfetto-any"), Scratch::new("perfetto-any-out"));
        write(dir.path(), &workers);
        check_perfetto(&dir, &out, "all");
    }
}

/// The packets that Perfetto's own decoder has read.
fn golden() -> Vec<TracePacket> {
    let text = |iid, name: &str| Interned { iid: Some(iid), name: Some(name.into()) };
    let packet = || TracePacket { trusted_packet_sequence_id: Some(1), ..Default::default() };
    let track = |track| TracePacket { track_descriptor: Some(track), ..packet() };
    let names = InternedData {
        event_names: vec![text(1, "rod::Step"), text(2, "rod::Halo"), text(3, "send")],
        debug_annotation_names: vec![text(1, "chunk")],
    };
    let mut packets = vec![TracePacket { interned_data: Some(names), sequence_flags: Some(1), ..packet() }];
    for rank in 0..2u64 {
        let (pid, process) = (Some(10 + rank as i32), Some(100 + rank));
        packets.push(track(TrackDescriptor {
            uuid: process,
            process: Some(ProcessDescriptor {
                pid,
                legacy_sort_index: Some(rank as i32),
                process_name: Some(format!("rank {rank} @ host0")),
            }),
            ..Default::default()
        }));
        let thread_name = Some("execute".into());
        packets.push(track(TrackDescriptor {
            uuid: Some(200 + rank),
            parent_uuid: process,
            thread: Some(ThreadDescriptor { pid, tid: Some(1), thread_name, legacy_sort_index: None }),
            ..Default::default()
        }));
        packets.push(track(TrackDescriptor {
            uuid: Some(300 + rank),
            name: Some("load cpu".into()),
            parent_uuid: process,
            counter: Some(CounterDescriptor { unit_name: Some("s".into()) }),
            ..Default::default()
        }));
    }
    let event = |at_ns, event| TracePacket {
        timestamp: Some(at_ns),
        track_event: Some(event),
        sequence_flags: Some(2),
        ..packet()
    };
    let of = |kind: EventType, track| TrackEvent {
        r#type: Some(kind as i32),
        track_uuid: Some(track),
        ..Default::default()
    };
    let chunk = DebugAnnotation { name_iid: Some(1), string_value: Some("[3]".into()), ..Default::default() };
    let (begin, end) = (EventType::SliceBegin, EventType::SliceEnd);
    let (step, halo) = (of(begin, 200), of(begin, 201));
    packets.extend([
        event(100_000, TrackEvent { debug_annotations: vec![chunk], name_iid: Some(1), ..step }),
        event(150_000, TrackEvent { name_iid: Some(3), flow_ids: vec![1], ..of(EventType::Instant, 200) }),
        event(200_000, TrackEvent { name_iid: Some(2), terminating_flow_ids: vec![1], ..halo }),
        event(400_000, of(end, 200)),
        event(600_000, of(end, 201)),
        event(1_000_000, TrackEvent { double_counter_value: Some(0.29), ..of(EventType::Counter, 300) }),
    ]);
    packets
}

const GOLDEN: &str = "
0a 39 50 01 62 33 12 0d 08 01 12 09 72 6f 64 3a 3a 53 74 65 70 12 0d 08 02 12 09 72 6f 64 3a 3a 48 61 6c 6f 12 08 08 03 12 04 73 65 6e 64 1a 09 08 01 12 05 63 68 75 6e 6b 68 01
0a 1d 50 01 e2 03 18 08 64 1a 14 08 0a 18 00 32 0e 72 61 6e 6b 20 30 20 40 20 68 6f 73 74 30
0a 19 50 01 e2 03 14 08 c8 01 22 0d 08 0a 10 01 2a 07 65 78 65 63 75 74 65 28 64
0a 19 50 01 e2 03 14 08 ac 02 12 08 6c 6f 61 64 20 63 70 75 28 64 42 03 32 01 73
0a 1d 50 01 e2 03 18 08 65 1a 14 08 0b 18 01 32 0e 72 61 6e 6b 20 31 20 40 20 68 6f 73 74 30
0a 19 50 01 e2 03 14 08 c9 01 22 0d 08 0b 10 01 2a 07 65 78 65 63 75 74 65 28 65
0a 19 50 01 e2 03 14 08 ad 02 12 08 6c 6f 61 64 20 63 70 75 28 65 42 03 32 01 73
0a 1a 40 a0 8d 06 50 01 5a 10 22 07 08 01 32 03 5b 33 5d 48 01 50 01 58 c8 01 68 02
0a 1b 40 f0 93 09 50 01 5a 11 48 03 50 03 58 c8 01 f9 02 01 00 00 00 00 00 00 00 68 02
0a 1b 40 c0 9a 0c 50 01 5a 11 48 01 50 02 58 c9 01 81 03 01 00 00 00 00 00 00 00 68 02
0a 0f 40 80 b5 18 50 01 5a 05 48 02 58 c8 01 68 02
0a 0f 40 c0 cf 24 50 01 5a 05 48 02 58 c9 01 68 02
0a 19 40 c0 84 3d 50 01 5a 0f 48 04 58 ac 02 e1 02 8f c2 f5 28 5c 8f d2 3f 68 02";

#[test]
fn packets_are_the_bytes_that_perfetto_reads() {
    let expected: Vec<u8> =
        GOLDEN.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    assert_eq!(expected.len(), 376);
    let mut bytes = Vec::new();
    golden().iter().for_each(|packet| encode(packet, &mut bytes));
    assert_eq!(bytes, expected);
}
