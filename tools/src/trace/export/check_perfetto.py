#!/usr/bin/env python3
"""Reads our Perfetto export with Perfetto's own decoder, and compares it with the trace as `--to csv` tells it.

    check_perfetto.py CARIBOU [TRACE]

CARIBOU is the command; without TRACE it makes one up. Needs the package `perfetto` of PyPI, for its message definitions
alone: nothing is fetched, no trace processor is started. If one is installed as `trace_processor_shell`, its SQL is
asked for the same sums.
"""

import collections
import csv
import pathlib
import shutil
import subprocess
import sys
import tempfile

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

TYPE = proto.TrackEvent.Type


def expected(path):
    """Time and number of handlers by rank and kind, and how many events of each sort there are."""
    total = collections.defaultdict(lambda: [0, 0])
    sorts = collections.Counter()
    with open(path, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            sorts[line["event"]] += 1
            if line["event"] == "handler":
                of_kind = total[int(line["rank"]), line["name"]]
                of_kind[0] += int(line["end_ns"]) - int(line["begin_ns"])
                of_kind[1] += 1
    return dict(total), sorts


def unknown_fields(message):
    """Fields that Perfetto's schema does not know, anywhere in a message."""
    from google.protobuf import unknown_fields as unknown

    count = len(unknown.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            many = value if hasattr(value, "__len__") and not hasattr(value, "ListFields") else [value]
            count += sum(unknown_fields(one) for one in many)
    return count


def decoded(path):
    """The same as Perfetto sees it, with its arrows and what is wrong."""
    trace = proto.Trace()
    trace.ParseFromString(pathlib.Path(path).read_bytes())
    names, ranks, wrong = {}, {}, []
    events = []
    for packet in trace.packet:
        if unknown_fields(packet):
            wrong.append(f"fields that are not in the schema: {packet}")
        names.update((name.iid, name.name) for name in packet.interned_data.event_names)
        track = packet.track_descriptor
        if packet.HasField("track_descriptor") and track.HasField("thread"):
            ranks[track.uuid] = track.thread.pid - 10
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    total = collections.defaultdict(lambda: [0, 0])
    open_slices, begins, ends = collections.defaultdict(list), collections.defaultdict(list), collections.defaultdict(list)
    for at_ns, event in sorted(events, key=lambda event: event[0]):
        if event.type == TYPE.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((at_ns, event.name or names[event.name_iid]))
        elif event.type == TYPE.TYPE_SLICE_END:
            begin_ns, name = open_slices[event.track_uuid].pop()
            of_kind = total[ranks[event.track_uuid], name]
            of_kind[0] += at_ns - begin_ns
            of_kind[1] += 1
        for flow in event.flow_ids:
            begins[flow].append(at_ns)
        for flow in event.terminating_flow_ids:
            ends[flow].append(at_ns)
    wrong += [f"slices without an end on track {track}" for track, slices in open_slices.items() if slices]
    wrong += [f"arrow {flow} has only one end" for flow in begins.keys() ^ ends.keys()]
    wrong += [f"arrow {flow} runs backwards" for flow in begins.keys() & ends.keys() if max(begins[flow]) > min(ends[flow])]
    return dict(total), len(begins), wrong


def by_sql(shell, path):
    """Time and number of slices by rank and name, as Perfetto's SQL says."""
    query = (
        "select p.pid - 10 as rank, s.name as name, sum(s.dur) as ns, count(*) as calls from slice s "
        "join thread_track t on s.track_id = t.id join thread using (utid) join process p using (upid) group by 1, 2"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(query)
        file.flush()
        answer = subprocess.run([shell, "-q", file.name, path], check=True, capture_output=True, text=True).stdout
    rows = csv.DictReader(line for line in answer.splitlines() if line.strip())
    return {(int(row["rank"]), row["name"]): [int(row["ns"]), int(row["calls"])] for row in rows}


def main():
    caribou, *trace = sys.argv[1:] or sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        run = trace[0] if trace else f"{scratch}/made-up"
        if not trace:
            subprocess.run([caribou, "trace", "generate", run, "--events", "50000"], check=True)
        table, file = f"{scratch}/events.csv", f"{scratch}/run.pftrace"
        export = [caribou, "trace", "export", run]
        subprocess.run([*export, "--to", "csv", "-o", table], check=True)
        wanted, sorts = expected(table)
        for flows in ["waits", "all", "none"]:
            subprocess.run([*export, "--to", "perfetto", "--flows", flows, "-o", file], check=True)
            found, arrows, wrong = decoded(file)
            seen = {key: found.get(key) for key in wanted}
            wrong += [f"rank {key[0]}, {key[1]}: {seen[key]}, not {wanted[key]}" for key in wanted if seen[key] != wanted[key]]
            idle = sum(calls for (_, name), (_, calls) in found.items() if name == "idle")
            if idle != sorts["idle"]:
                wrong.append(f"{idle} idle slices, not {sorts['idle']}")
            if (arrows == 0) != (flows == "none" or not sorts["send"] + sorts["depart"]):
                wrong.append(f"{arrows} arrows")
            shell = shutil.which("trace_processor_shell")
            if shell:
                told = by_sql(shell, file)
                wrong += [f"SQL says {told.get(key)} of {key}" for key in wanted if told.get(key) != wanted[key]]
            if wrong:
                sys.exit("\n".join([f"--flows {flows}:", *wrong[:20]]))
            calls = sum(calls for _, calls in wanted.values())
            print(f"--flows {flows}: {calls} handlers of {len(wanted)} ranks and kinds, {arrows} arrows, all as in the trace")


if __name__ == "__main__":
    main()
