//! PyTorch's snapshots: what `torch.cuda.memory._snapshot()` gives, pickled.
//!
//! Numbers go as `i64`: PyTorch's viewer takes longer ones for another type, and can't add them.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::alloc::snapshot::{
    BlockInfo, Frame, MemorySnapshot, SegmentInfo, SettingsInfo, TraceAction, TraceEntry,
};

impl MemorySnapshot {
    /// Writes it as PyTorch's snapshots are: `torch/cuda/_memory_viz.py` and the viewer at
    /// <https://pytorch.org/memory_viz> read it. Needs the feature `pickle`.
    ///
    /// `out` had better be buffered.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    ///
    /// # Example
    ///
    /// ```
    /// let snapshot = vkaccel::alloc::MemorySnapshot::default();
    /// let mut file = Vec::new();
    /// snapshot.write_pickle(&mut file)?;
    /// assert_eq!(file[0], 0x80);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write_pickle(&self, mut out: impl Write) -> io::Result<()> {
        let options = serde_pickle::SerOptions::new().proto_v2();
        let written = serde_pickle::to_writer(&mut out, &Snapshot(self), options);
        written.map_err(|error| match error {
            serde_pickle::Error::Io(error) => error,
            other => io::Error::other(other),
        })?;
        out.flush()
    }
}

struct Snapshot<'a>(&'a MemorySnapshot);
/// The entries of every device: those of the ones before are empty.
struct Traces<'a>(&'a MemorySnapshot);
struct List<I>(I);
struct Segment<'a>(u32, &'a SegmentInfo);
struct Block<'a>(&'a BlockInfo);
struct Entry<'a>(&'a TraceEntry);
struct Call<'a>(&'a Frame);
struct Settings<'a>(&'a SettingsInfo);
struct Roundup<'a>(&'a SettingsInfo);

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn pool((first, second): (u64, u64)) -> (i64, i64) {
    (signed(first), signed(second))
}

fn frames(frames: &[Frame]) -> List<impl Iterator<Item = Call<'_>> + Clone> {
    List(frames.iter().map(Call))
}

impl<I> Serialize for List<I>
where
    I: Iterator<Item: Serialize> + Clone,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

impl Serialize for Snapshot<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let device = self.0.device;
        let segments = self.0.segments.iter();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(
            "segments",
            &List(segments.map(|info| Segment(device, info))),
        )?;
        map.serialize_entry("device_traces", &Traces(self.0))?;
        map.serialize_entry("allocator_settings", &Settings(&self.0.settings))?;
        map.serialize_entry("external_annotations", &List(std::iter::empty::<()>()))?;
        map.end()
    }
}

impl Serialize for Traces<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for _ in 0..self.0.device {
            list.serialize_element(&List(std::iter::empty::<()>()))?;
        }
        list.serialize_element(&List(self.0.history.iter().map(Entry)))?;
        list.end()
    }
}

impl Serialize for Segment<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(device, info) = self;
        let kind = if info.is_large { "large" } else { "small" };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("device", device)?;
        let counter = signed(info.registration_counter);
        map.serialize_entry("registration_counter", &counter)?;
        map.serialize_entry("address", &signed(info.address))?;
        map.serialize_entry("total_size", &signed(info.total_size))?;
        map.serialize_entry("allocated_size", &signed(info.allocated_size))?;
        map.serialize_entry("active_size", &signed(info.active_size))?;
        map.serialize_entry("requested_size", &signed(info.requested_size))?;
        map.serialize_entry("stream", &signed(info.stream))?;
        map.serialize_entry("segment_type", kind)?;
        map.serialize_entry("segment_pool_id", &pool(info.pool))?;
        map.serialize_entry("is_expandable", &false)?;
        map.serialize_entry("frames", &frames(&info.frames))?;
        map.serialize_entry("blocks", &List(info.blocks.iter().map(Block)))?;
        map.end()
    }
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("address", &signed(self.0.address))?;
        map.serialize_entry("size", &signed(self.0.size))?;
        map.serialize_entry("requested_size", &signed(self.0.requested_size))?;
        map.serialize_entry("state", self.0.state.name())?;
        map.serialize_entry("frames", &frames(&self.0.frames))?;
        map.end()
    }
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (place, at) = match self.0.action {
            TraceAction::Oom => ("device_free", self.0.device_free),
            _ => ("addr", self.0.address),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("action", self.0.action.name())?;
        map.serialize_entry(place, &signed(at))?;
        map.serialize_entry("size", &signed(self.0.size))?;
        map.serialize_entry("stream", &signed(self.0.stream))?;
        map.serialize_entry("pool_id", &pool(self.0.pool))?;
        map.serialize_entry("time_us", &signed(self.0.time_us))?;
        map.serialize_entry("frames", &frames(&self.0.frames))?;
        map.end()
    }
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &*self.0.name)?;
        map.serialize_entry("filename", &*self.0.filename)?;
        map.serialize_entry("line", &self.0.line)?;
        map.end()
    }
}

impl Serialize for Settings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let conf = &self.0.conf;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("PYTORCH_CUDA_ALLOC_CONF", &conf.to_string())?;
        let max_split = conf.max_split_size().map_or(-1, signed);
        map.serialize_entry("max_split_size", &max_split)?;
        let threshold = conf.garbage_collection_threshold().unwrap_or(0.0);
        map.serialize_entry("garbage_collection_threshold", &threshold)?;
        map.serialize_entry("expandable_segments", &false)?;
        map.serialize_entry("roundup_power2_divisions", &Roundup(self.0))?;
        map.end()
    }
}

impl Serialize for Roundup<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for class in 0..16 {
            let divisions = self.0.conf.roundup_power2_divisions(1 << (20 + class));
            map.serialize_entry(&(1_u32 << class).to_string(), &signed(divisions))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_pickle::{HashableValue, Value};

    use super::*;
    use crate::alloc::snapshot::BlockState;

    type Dict = BTreeMap<HashableValue, Value>;

    fn snapshot() -> MemorySnapshot {
        let frames: Arc<[Frame]> = Arc::new([Frame {
            name: "step".into(),
            filename: "src/main.rs".into(),
            line: 70_000,
        }]);
        let block = BlockInfo {
            address: 1 << 40,
            size: 2 << 20,
            requested_size: 300,
            state: BlockState::ActivePendingFree,
            frames: Arc::clone(&frames),
            ..BlockInfo::default()
        };
        let alloc = TraceEntry {
            address: 1 << 40,
            size: 300,
            pool: (0, 3),
            time_us: 1_800_000_000_000_000,
            frames,
            ..TraceEntry::default()
        };
        let oom = TraceEntry {
            action: TraceAction::Oom,
            device_free: u64::MAX,
            ..TraceEntry::default()
        };
        MemorySnapshot {
            device: 2,
            segments: vec![SegmentInfo {
                address: 1 << 40,
                total_size: 2 << 20,
                is_large: true,
                blocks: vec![block],
                ..SegmentInfo::default()
            }],
            settings: SettingsInfo {
                conf: "roundup_power2_divisions:4".parse().unwrap(),
                ..SettingsInfo::default()
            },
            // More than a pickle adds to a list at once.
            history: [vec![alloc; 2500], vec![oom]].concat(),
            ..MemorySnapshot::default()
        }
    }

    fn written(snapshot: &MemorySnapshot) -> Vec<u8> {
        let mut out = Vec::new();
        snapshot.write_pickle(&mut out).unwrap();
        out
    }

    fn dict(value: &Value) -> Dict {
        match value {
            Value::Dict(dict) => dict.clone(),
            other => panic!("{other} is no dictionary"),
        }
    }

    fn list(value: &Value) -> Vec<Value> {
        match value {
            Value::List(list) | Value::Tuple(list) => list.clone(),
            other => panic!("{other} is no list"),
        }
    }

    fn get<'a>(dict: &'a Dict, key: &str) -> &'a Value {
        &dict[&HashableValue::String(key.to_owned())]
    }

    #[test]
    fn everything_is_where_pytorchs_viewers_look_for_it() {
        let root = serde_pickle::value_from_slice(&written(&snapshot()), Default::default());
        let root = dict(&root.unwrap());
        let segment = dict(&list(get(&root, "segments"))[0]);
        assert_eq!(get(&segment, "device"), &Value::I64(2));
        assert_eq!(get(&segment, "address"), &Value::I64(1 << 40));
        assert_eq!(
            get(&segment, "segment_type"),
            &Value::String("large".into())
        );
        let block = dict(&list(get(&segment, "blocks"))[0]);
        assert_eq!(
            get(&block, "state"),
            &Value::String("active_pending_free".into())
        );
        let frame = dict(&list(get(&block, "frames"))[0]);
        assert_eq!(get(&frame, "line"), &Value::I64(70_000));
        assert_eq!(get(&frame, "name"), &Value::String("step".into()));

        // A list for each device up to this one.
        let traces = list(get(&root, "device_traces"));
        assert_eq!(traces.len(), 3);
        assert!(list(&traces[0]).is_empty() && list(&traces[1]).is_empty());
        let entries = list(&traces[2]);
        assert_eq!(entries.len(), 2501);
        let alloc = dict(&entries[2499]);
        assert_eq!(get(&alloc, "action"), &Value::String("alloc".into()));
        assert_eq!(get(&alloc, "time_us"), &Value::I64(1_800_000_000_000_000));
        assert_eq!(list(get(&alloc, "pool_id")), [Value::I64(0), Value::I64(3)]);
        let oom = dict(&entries[2500]);
        assert_eq!(get(&oom, "device_free"), &Value::I64(i64::MAX));
        assert!(!oom.contains_key(&HashableValue::String("addr".into())));

        let settings = dict(get(&root, "allocator_settings"));
        assert_eq!(get(&settings, "max_split_size"), &Value::I64(-1));
        let roundup = dict(get(&settings, "roundup_power2_divisions"));
        assert_eq!(get(&roundup, "32768"), &Value::I64(4));
    }

    /// The viewer has a reader of its own, in JavaScript.
    #[test]
    fn the_web_viewers_reader_knows_every_instruction_and_number() {
        let data = written(&snapshot());
        let length = |place: usize, bytes: usize| {
            let little = data[place..place + bytes].iter().rev();
            little.fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let mut place = 0;
        let mut ended = false;
        while !ended {
            let code = data[place];
            place += 1;
            place += match code {
                0x80 => {
                    assert!((2..=4).contains(&data[place]));
                    1
                }
                b']' | b'}' | b')' | b'(' | b'e' | b'u' | b't' | 0x88 | 0x89 | b'N' => 0,
                b'K' => 1,
                b'M' => 2,
                b'J' => 4,
                b'G' => 8,
                b'X' => 4 + length(place, 4),
                // It takes longer ones for another type, and can't add them.
                0x8a if data[place] <= 8 => 1 + length(place, 1),
                b'.' => {
                    ended = true;
                    0
                }
                other => panic!("byte {}: 0x{other:02x}", place - 1),
            };
        }
        assert_eq!(place, data.len());
    }
}
