//! Makes a snapshot of what PyTorch pickled: `torch.cuda.memory._snapshot()`, or its segments alone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use vkaccel::alloc::{BlockInfo, Frame, MemorySnapshot, SegmentInfo, TraceAction, TraceEntry};

use super::lines::{Recorded, add_to_sums, state};
use super::pickle::{Id, Node, Pickle};

/// How many frames of a stack are kept; further ones are those of the start of the program.
const MAX_FRAMES: usize = 256;

/// How many bytes of names of functions and files are kept: what is shared in the file is not shared
/// here. Stacks beyond that are left out.
const MAX_NAMES: usize = 256 << 20;

/// Reads a snapshot of PyTorch's; of several devices the one that is `asked` for, or the only one
/// with anything on it.
pub fn read(pickle: &Pickle<'_>, asked: Option<u32>) -> Result<Recorded, String> {
    let root = pickle.root();
    let not_one = "it is a pickle, but no snapshot of PyTorch's memory: it has no `segments`";
    // What `memory_snapshot` gives is the list of segments.
    let (segments, traces) = match pickle.node(root) {
        Node::List(_) => (root, None),
        _ => {
            let segments = pickle.get(root, "segments").ok_or(not_one)?;
            (segments, pickle.get(root, "device_traces"))
        }
    };
    let segments = pickle.items(segments).ok_or(not_one)?;
    let traces = traces.map_or(Some(&[][..]), |traces| pickle.items(traces));
    let traces = traces.ok_or("`device_traces` is no list")?;
    let mut reader = Reader {
        pickle,
        stacks: HashMap::new(),
        unique: HashSet::new(),
        names: 0,
    };
    let device = choose(&reader, segments, traces, asked)?;

    let mut snapshot = MemorySnapshot::default();
    snapshot.device = device;
    for (index, id) in segments.iter().enumerate() {
        if reader.device_of(*id)? == device {
            let segment = reader.segment(*id, index);
            let segment = segment.map_err(|text| format!("segment {index}: {text}"))?;
            snapshot.segments.push(segment);
        }
    }
    let trace = traces.get(device as usize).and_then(|id| pickle.items(*id));
    for (index, id) in trace.unwrap_or(&[]).iter().enumerate() {
        let entry = reader.entry(*id);
        let entry = entry.map_err(|text| format!("entry {index}: {text}"))?;
        snapshot.history.extend(entry);
    }
    let conf = conf(pickle).unwrap_or("").to_owned();
    if let Ok(parsed) = conf.parse() {
        snapshot.settings.conf = parsed;
    }
    Ok(Recorded { snapshot, conf })
}

/// The settings as they were spelled.
fn conf<'a>(pickle: &Pickle<'a>) -> Option<&'a str> {
    let settings = pickle.get(pickle.root(), "allocator_settings")?;
    let names = ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"];
    let found = names.iter().find_map(|name| pickle.get(settings, name));
    pickle.text(found?)
}

fn choose(
    reader: &Reader<'_, '_>,
    segments: &[Id],
    traces: &[Id],
    asked: Option<u32>,
) -> Result<u32, String> {
    let mut devices = Vec::new();
    for id in segments {
        devices.push(reader.device_of(*id)?);
    }
    for (device, id) in (0_u32..).zip(traces) {
        let trace = reader.pickle.items(*id);
        if !trace
            .ok_or("`device_traces` holds something that is no list")?
            .is_empty()
        {
            devices.push(device);
        }
    }
    devices.sort_unstable();
    devices.dedup();
    match (asked, devices.as_slice()) {
        (Some(asked), devices) if devices.contains(&asked) => Ok(asked),
        (None, [device]) => Ok(*device),
        (None, []) => Ok(0),
        (_, devices) => {
            let list: Vec<String> = devices.iter().map(u32::to_string).collect();
            Err(format!(
                "there is memory of the devices [{}]: --device says which one",
                list.join(", ")
            ))
        }
    }
}

struct Reader<'p, 'a> {
    pickle: &'p Pickle<'a>,
    stacks: HashMap<Id, Arc<[Frame]>>,
    /// Equal ones are kept once, since not every program that pickles shares them.
    unique: HashSet<Arc<[Frame]>>,
    names: usize,
}

impl<'a> Reader<'_, 'a> {
    fn device_of(&self, segment: Id) -> Result<u32, String> {
        match self.pickle.get(segment, "device") {
            // Old ones don't say it.
            None => Ok(0),
            Some(id) => {
                let device = self.pickle.int(id).and_then(|id| u32::try_from(id).ok());
                device.ok_or_else(|| "`device` of a segment is no index".to_owned())
            }
        }
    }

    fn number(&self, dict: Id, name: &str) -> Result<u64, String> {
        let id = self.pickle.get(dict, name);
        let id = id.ok_or_else(|| format!("`{name}` is missing"))?;
        let number = self
            .pickle
            .int(id)
            .and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| format!("`{name}` is not a whole number from 0 on"))
    }

    /// A number that older versions don't write.
    fn number_or(&self, dict: Id, name: &str, or: u64) -> Result<u64, String> {
        match self.pickle.get(dict, name) {
            None => Ok(or),
            Some(_) => self.number(dict, name),
        }
    }

    fn text(&self, dict: Id, name: &str) -> Result<&'a str, String> {
        let text = self
            .pickle
            .get(dict, name)
            .and_then(|id| self.pickle.text(id));
        text.ok_or_else(|| format!("`{name}` is no text"))
    }

    fn pool(&self, dict: Id, name: &str) -> Result<(u64, u64), String> {
        let Some(id) = self.pickle.get(dict, name) else {
            return Ok((0, 0));
        };
        let number = |id: &Id| self.pickle.int(*id).and_then(|n| u64::try_from(n).ok());
        match self.pickle.items(id) {
            Some([first, second]) => number(first).zip(number(second)),
            _ => None,
        }
        .ok_or_else(|| format!("`{name}` is not a pair of numbers"))
    }

    fn segment(&mut self, id: Id, index: usize) -> Result<SegmentInfo, String> {
        let mut segment = SegmentInfo::default();
        segment.registration_counter = self.number_or(id, "registration_counter", index as u64)?;
        segment.address = self.number(id, "address")?;
        segment.total_size = self.number(id, "total_size")?;
        segment.stream = self.number_or(id, "stream", 0)?;
        segment.is_large = self
            .text(id, "segment_type")
            .is_ok_and(|kind| kind == "large");
        segment.pool = self.pool(id, "segment_pool_id")?;
        segment.frames = self.frames(id);
        let blocks = self.pickle.get(id, "blocks");
        let blocks = blocks.and_then(|blocks| self.pickle.items(blocks));
        let mut address = segment.address;
        for block in blocks.ok_or("`blocks` is no list")? {
            let size = self.number(*block, "size")?;
            let name = self.text(*block, "state")?;
            let mut info = BlockInfo::default();
            info.address = address;
            info.size = size;
            info.state = state(name).ok_or_else(|| format!("`{name}` is no state"))?;
            if info.state != vkaccel::alloc::BlockState::Inactive {
                info.requested_size = self.number_or(*block, "requested_size", size)?;
            }
            info.frames = self.frames(*block);
            segment.blocks.push(info);
            add_to_sums(&mut segment);
            address = address.saturating_add(size);
        }
        if address > segment.address.saturating_add(segment.total_size) {
            return Err("its blocks are larger than it is".to_owned());
        }
        Ok(segment)
    }

    /// An entry; none of what is no use of memory, or none that there is here.
    fn entry(&mut self, id: Id) -> Result<Option<TraceEntry>, String> {
        let name = self.text(id, "action")?;
        let action = match name {
            // Parts of expandable segments: as if each was one.
            "segment_map" => TraceAction::SegmentAlloc,
            "segment_unmap" => TraceAction::SegmentFree,
            "annotate" => return Ok(None),
            name => TraceAction::from_name(name).ok_or_else(|| format!("`{name}` is no action"))?,
        };
        let mut entry = TraceEntry::default();
        entry.action = action;
        match action {
            TraceAction::Oom => entry.device_free = self.number_or(id, "device_free", 0)?,
            TraceAction::Snapshot => {}
            _ => entry.address = self.number(id, "addr")?,
        }
        entry.size = self.number_or(id, "size", 0)?;
        entry.stream = self.number_or(id, "stream", 0)?;
        entry.pool = self.pool(id, "pool_id")?;
        entry.time_us = self.number_or(id, "time_us", 0)?;
        entry.frames = self.frames(id);
        Ok(Some(entry))
    }

    /// The stack of an entry, segment or block; none where it has none that can be read.
    fn frames(&mut self, dict: Id) -> Arc<[Frame]> {
        let Some(list) = self.pickle.get(dict, "frames") else {
            return Arc::default();
        };
        if let Some(known) = self.stacks.get(&list) {
            return Arc::clone(known);
        }
        let mut frames = Vec::new();
        let mut names = 0;
        for id in self
            .pickle
            .items(list)
            .unwrap_or(&[])
            .iter()
            .take(MAX_FRAMES)
        {
            let text = |name| self.text(*id, name).unwrap_or("");
            let (name, file) = (text("name"), text("filename"));
            names += name.len() + file.len() + size_of::<Frame>();
            if self.names.saturating_add(names) > MAX_NAMES {
                break;
            }
            let mut frame = Frame::default();
            frame.name = name.to_owned().into();
            frame.filename = file.to_owned().into();
            let line = self.number_or(*id, "line", 0).unwrap_or(0);
            frame.line = u32::try_from(line).unwrap_or(0);
            frames.push(frame);
        }
        let mut frames: Arc<[Frame]> = frames.into();
        match self.unique.get(&frames) {
            Some(known) => frames = Arc::clone(known),
            None => {
                self.names += names;
                self.unique.insert(Arc::clone(&frames));
            }
        }
        self.stacks.insert(list, Arc::clone(&frames));
        frames
    }
}

#[cfg(test)]
mod tests {
    use vkaccel::alloc::{AllocConf, HistoryOptions, Simulator};

    use super::*;

    fn written(device: u32) -> (MemorySnapshot, Vec<u8>) {
        let conf: AllocConf = "max_split_size_mb:64".parse().unwrap();
        let mut simulator = Simulator::new(64 << 20, conf);
        simulator.record_history(Some(HistoryOptions::default()));
        simulator.allocate(1, 100, 3).unwrap();
        simulator.allocate(2, 5 << 20, 0).unwrap();
        simulator.free(1).unwrap();
        simulator.allocate(3, 1 << 30, 0).unwrap_err();
        let mut snapshot = simulator.snapshot();
        snapshot.device = device;
        let mut frame = Frame::default();
        frame.filename = "a.rs".into();
        frame.line = 7;
        snapshot.history[1].frames = Arc::new([frame]);
        let mut file = Vec::new();
        snapshot.write_pickle(&mut file).unwrap();
        (snapshot, file)
    }

    #[test]
    fn our_own_pickles_are_read_again() {
        let (mut snapshot, file) = written(1);
        let recorded = read(&Pickle::read(&file).unwrap(), None).unwrap();
        assert_eq!(recorded.conf, "max_split_size_mb:64");
        // What PyTorch's snapshots don't say.
        snapshot.total_bytes = 0;
        snapshot.settings.memory_fraction = None;
        for segment in &mut snapshot.segments {
            segment
                .blocks
                .iter_mut()
                .for_each(|block| block.gc_counter = 0);
        }
        assert_eq!(recorded.snapshot, snapshot);
    }

    #[test]
    fn the_device_is_the_only_one_or_the_one_asked_for() {
        let (_, file) = written(1);
        let pickle = Pickle::read(&file).unwrap();
        assert!(read(&pickle, Some(1)).is_ok());
        let error = read(&pickle, Some(0)).unwrap_err();
        assert!(
            error.contains("[1]") && error.contains("--device"),
            "{error}"
        );
    }

    #[test]
    fn other_pickles_are_refused_by_what_they_lack() {
        for (data, says) in [
            (&b"N."[..], "no snapshot"),
            (b"}X\x01\x00\x00\x00aNs.", "no `segments`"),
            (b"}X\x08\x00\x00\x00segments]s.", ""),
            (b"](}e.", "`address` is missing"),
            (
                b"}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00device_tracesNu.",
                "no list",
            ),
            (
                b"}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00device_traces](](}eeu.",
                "entry 0: `action`",
            ),
        ] {
            let pickle = Pickle::read(data).unwrap();
            match read(&pickle, None) {
                Ok(recorded) => assert!(says.is_empty(), "{recorded:?}"),
                Err(error) => assert!(!says.is_empty() && error.contains(says), "{error}"),
            }
        }
    }

    #[test]
    fn damaged_snapshots_are_read_or_refused_and_nothing_else() {
        let (_, file) = written(0);
        for place in 0..file.len() {
            for value in [0, 1, b'(', b'.', b'N', b']', 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[place] = value;
                if let Ok(pickle) = Pickle::read(&damaged) {
                    let _ = read(&pickle, None);
                }
            }
        }
    }
}
