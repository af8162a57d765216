//! Defines the messages of Perfetto's TrackEvent format that the export writes, with their field numbers. It is a
//! subset written by hand, because the whole schema takes minutes to compile. Perfetto's own decoder reads the output
//! (`check_perfetto.py`).

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct TracePacket {
    /// In ns.
    #[prost(uint64, optional, tag = "8")]
    pub(in crate::trace::export) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(in crate::trace::export) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(in crate::trace::export) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(in crate::trace::export) interned_data: Option<InternedData>,
    /// 1: names begin anew. 2: names are used.
    #[prost(uint32, optional, tag = "13")]
    pub(in crate::trace::export) sequence_flags: Option<u32>,
    #[prost(bool, optional, tag = "42")]
    pub(in crate::trace::export) previous_packet_dropped: Option<bool>,
    #[prost(message, optional, tag = "60")]
    pub(in crate::trace::export) track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(in crate::trace::export) debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub(in crate::trace::export) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(in crate::trace::export) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(in crate::trace::export) track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub(in crate::trace::export) name: Option<String>,
    #[prost(double, optional, tag = "44")]
    pub(in crate::trace::export) double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(in crate::trace::export) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(in crate::trace::export) terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(in crate::trace::export) enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(in crate::trace::export) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(in crate::trace::export) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::trace::export) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::trace::export) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(in crate::trace::export) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(in crate::trace::export) counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(in crate::trace::export) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(in crate::trace::export) legacy_sort_index: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(in crate::trace::export) process_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(in crate::trace::export) pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(in crate::trace::export) tid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(in crate::trace::export) legacy_sort_index: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub(in crate::trace::export) thread_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub(in crate::trace::export) unit_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub(in crate::trace::export) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(in crate::trace::export) uint_value: Option<u64>,
    #[prost(double, optional, tag = "5")]
    pub(in crate::trace::export) double_value: Option<f64>,
    #[prost(string, optional, tag = "6")]
    pub(in crate::trace::export) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(in crate::trace::export) name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub(in crate::trace::export) event_names: Vec<Interned>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::trace::export) debug_annotation_names: Vec<Interned>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::trace::export) struct Interned {
    #[prost(uint64, optional, tag = "1")]
    pub(in crate::trace::export) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(in crate::trace::export) name: Option<String>,
}
