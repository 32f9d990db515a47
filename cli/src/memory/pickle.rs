//! Reads Python's pickles of plain data, as PyTorch's snapshots are.
//!
//! Of our own since the crates there are don't do: serde-pickle takes an object that occurs twice for
//! a recursive one, which every stack trace of a snapshot is, its fork `pickled` unfolds what is
//! shared, and both overflow the stack on deep nesting. Here objects lie in one list and name each
//! other by number, as they are in the file: nothing recurses, nothing is copied, and the memory
//! taken grows with the file alone. No Python object is ever made: a pickle that wants to call
//! something is refused.

use std::fmt::{self, Display};

/// How many objects are read at most: some gigabytes of them.
const MAX_NODES: usize = 1 << 26;

/// The number of an object in its [`Pickle`].
pub type Id = u32;

/// A pickle's objects.
#[derive(Debug)]
pub struct Pickle<'a> {
    nodes: Vec<Node<'a>>,
    root: Id,
}

/// An object. What is in a container may be shared with others, and may be the container itself.
#[derive(Debug, PartialEq)]
pub enum Node<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// Too large for an `i64`, or bytes: nothing that a snapshot needs.
    Other,
    Float(f64),
    Text(&'a str),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
}

/// Why a pickle can't be read.
#[derive(Debug, PartialEq)]
pub struct Fault {
    /// The byte of the file.
    pub at: usize,
    pub what: What,
}

#[derive(Debug, PartialEq)]
pub enum What {
    Ends,
    /// An instruction that no plain data needs, as it calls a function or makes an object.
    Calls(u8),
    Unknown(u8),
    /// The protocol has not come yet.
    Protocol(u8),
    Text,
    Stack,
    Memo,
    Items,
    TooMany,
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.at)?;
        match self.what {
            What::Ends => f.write_str("the pickle ends here, before its end mark"),
            What::Calls(code) => write!(
                f,
                "an instruction (0x{code:02x}) that makes a Python object: a snapshot is plain data"
            ),
            What::Unknown(code) => write!(f, "0x{code:02x} is no instruction of a pickle"),
            What::Protocol(number) => write!(f, "protocol {number} is not known"),
            What::Text => f.write_str("a text is not UTF-8"),
            What::Stack => f.write_str("an instruction finds fewer objects than it takes"),
            What::Memo => f.write_str("an object is named that was not stored"),
            What::Items => f.write_str("items are added to something that holds none"),
            What::TooMany => write!(f, "more than {MAX_NODES} objects"),
        }
    }
}

impl<'a> Pickle<'a> {
    /// Reads a pickle.
    pub fn read(data: &'a [u8]) -> Result<Self, Fault> {
        let mut reader = Reader {
            data,
            at: 0,
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
        };
        loop {
            let at = reader.at;
            match reader.step() {
                Ok(None) => {}
                Ok(Some(root)) => {
                    let nodes = reader.nodes;
                    return Ok(Self { nodes, root });
                }
                Err(what) => return Err(Fault { at, what }),
            }
        }
    }

    /// What was pickled.
    pub const fn root(&self) -> Id {
        self.root
    }

    pub fn node(&self, id: Id) -> &Node<'a> {
        const NONE: &Node<'static> = &Node::None;
        self.nodes.get(id as usize).unwrap_or(NONE)
    }

    /// A value of a dictionary by its key; of equal keys the last one.
    pub fn get(&self, dict: Id, key: &str) -> Option<Id> {
        let Node::Dict(pairs) = self.node(dict) else {
            return None;
        };
        let is_key =
            |(id, _): &&(Id, Id)| matches!(self.node(*id), Node::Text(text) if *text == key);
        pairs.iter().rev().find(is_key).map(|(_, value)| *value)
    }

    /// The items of a list or tuple.
    pub fn items(&self, id: Id) -> Option<&[Id]> {
        match self.node(id) {
            Node::List(items) | Node::Tuple(items) => Some(items),
            _ => None,
        }
    }

    pub fn text(&self, id: Id) -> Option<&'a str> {
        match self.node(id) {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn int(&self, id: Id) -> Option<i64> {
        match self.node(id) {
            Node::Int(number) => Some(*number),
            Node::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    nodes: Vec<Node<'a>>,
    stack: Vec<Id>,
    /// Where in the stack what belongs together starts.
    marks: Vec<usize>,
    memo: Vec<Option<Id>>,
}

type Step<T> = Result<T, What>;

impl<'a> Reader<'a> {
    /// Follows an instruction. The last one gives the object.
    fn step(&mut self) -> Step<Option<Id>> {
        let [code] = self.array()?;
        match code {
            0x80 => {
                let [protocol] = self.array()?;
                if protocol > 5 {
                    return Err(What::Protocol(protocol));
                }
            }
            // The length of a frame: what is in it follows.
            0x95 => drop(self.array::<8>()?),
            b'.' => return self.pop().map(Some),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_marked()?),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'N' => self.push(Node::None)?,
            0x88 => self.push(Node::Bool(true))?,
            0x89 => self.push(Node::Bool(false))?,
            b'J' => {
                let number = i32::from_le_bytes(self.array()?);
                self.push(Node::Int(number.into()))?;
            }
            b'K' => {
                let [number] = self.array()?;
                self.push(Node::Int(number.into()))?;
            }
            b'M' => {
                let number = u16::from_le_bytes(self.array()?);
                self.push(Node::Int(number.into()))?;
            }
            0x8a => {
                let [len] = self.array()?;
                self.long(len.into())?;
            }
            0x8b => {
                let len = self.length4()?;
                self.long(len)?;
            }
            b'G' => {
                let number = f64::from_be_bytes(self.array()?);
                self.push(Node::Float(number))?;
            }
            0x8c => {
                let [len] = self.array()?;
                self.text(len.into())?;
            }
            b'X' => {
                let len = self.length4()?;
                self.text(len)?;
            }
            0x8d => {
                let len = self.length8()?;
                self.text(len)?;
            }
            // Texts of Python 2.
            b'U' => {
                let [len] = self.array()?;
                self.text(len.into())?;
            }
            b'T' => {
                let len = self.length4()?;
                self.text(len)?;
            }
            b'C' => {
                let [len] = self.array()?;
                self.bytes(len.into())?;
            }
            b'B' => {
                let len = self.length4()?;
                self.bytes(len)?;
            }
            0x8e | 0x96 => {
                let len = self.length8()?;
                self.bytes(len)?;
            }
            b']' => self.push(Node::List(Vec::new()))?,
            b'}' => self.push(Node::Dict(Vec::new()))?,
            b')' => self.push(Node::Tuple(Vec::new()))?,
            0x85..=0x87 => self.tuple(usize::from(code - 0x84))?,
            b't' => {
                let items = self.pop_marked()?;
                self.push(Node::Tuple(items))?;
            }
            b'l' => {
                let items = self.pop_marked()?;
                self.push(Node::List(items))?;
            }
            b'd' => {
                let items = self.pop_marked()?;
                self.push(Node::Dict(pairs(&items)?))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' => {
                let items = self.pop_marked()?;
                self.append(&items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_marked()?;
                self.set_items(&items)?;
            }
            b'q' => {
                let [place] = self.array()?;
                self.store(place.into())?;
            }
            b'r' => {
                let place = self.length4()?;
                self.store(place)?;
            }
            0x94 => self.store(self.memo.len())?,
            b'h' => {
                let [place] = self.array()?;
                self.fetch(place.into())?;
            }
            b'j' => {
                let place = self.length4()?;
                self.fetch(place)?;
            }
            b'c' | b'i' | b'o' | b'b' | b'R' | b'P' | b'Q' | 0x81..=0x84 | 0x92 | 0x93 => {
                return Err(What::Calls(code));
            }
            _ => return Err(What::Unknown(code)),
        }
        Ok(None)
    }

    fn take(&mut self, len: usize) -> Step<&'a [u8]> {
        let rest = self.data.get(self.at..).ok_or(What::Ends)?;
        let taken = rest.get(..len).ok_or(What::Ends)?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| What::Ends)
    }

    fn length4(&mut self) -> Step<usize> {
        let len = u32::from_le_bytes(self.array()?);
        usize::try_from(len).map_err(|_| What::Ends)
    }

    fn length8(&mut self) -> Step<usize> {
        let len = u64::from_le_bytes(self.array()?);
        usize::try_from(len).map_err(|_| What::Ends)
    }

    fn push(&mut self, node: Node<'a>) -> Step<()> {
        if self.nodes.len() >= MAX_NODES {
            return Err(What::TooMany);
        }
        let id = Id::try_from(self.nodes.len()).map_err(|_| What::TooMany)?;
        self.nodes.push(node);
        self.stack.push(id);
        Ok(())
    }

    fn top(&self) -> Step<Id> {
        let bottom = self.marks.last().copied().unwrap_or(0);
        let items = self.stack.get(bottom..).unwrap_or(&[]);
        items.last().copied().ok_or(What::Stack)
    }

    fn pop(&mut self) -> Step<Id> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Takes what was pushed since the last mark.
    fn pop_marked(&mut self) -> Step<Vec<Id>> {
        let mark = self.marks.pop().ok_or(What::Stack)?;
        if mark > self.stack.len() {
            return Err(What::Stack);
        }
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, len: usize) -> Step<()> {
        let mut items = vec![0; len];
        for item in items.iter_mut().rev() {
            *item = self.pop()?;
        }
        self.push(Node::Tuple(items))
    }

    fn append(&mut self, more: &[Id]) -> Step<()> {
        let list = self.top()? as usize;
        match self.nodes.get_mut(list) {
            Some(Node::List(items)) => items.extend_from_slice(more),
            _ => return Err(What::Items),
        }
        Ok(())
    }

    fn set_items(&mut self, more: &[Id]) -> Step<()> {
        let dict = self.top()? as usize;
        match self.nodes.get_mut(dict) {
            Some(Node::Dict(items)) => items.extend(pairs(more)?),
            _ => return Err(What::Items),
        }
        Ok(())
    }

    fn text(&mut self, len: usize) -> Step<()> {
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| What::Text)?;
        self.push(Node::Text(text))
    }

    fn bytes(&mut self, len: usize) -> Step<()> {
        self.take(len)?;
        self.push(Node::Other)
    }

    /// An integer in as few bytes as it needs, in two's complement.
    fn long(&mut self, len: usize) -> Step<()> {
        let bytes = self.take(len)?;
        let negative = bytes.last().is_some_and(|last| *last >= 0x80);
        let mut whole = [if negative { 0xff } else { 0 }; 8];
        let node = match whole.get_mut(..len) {
            Some(low) => {
                low.copy_from_slice(bytes);
                Node::Int(i64::from_le_bytes(whole))
            }
            None => Node::Other,
        };
        self.push(node)
    }

    fn store(&mut self, place: usize) -> Step<()> {
        let top = self.top()?;
        // Each place needs an instruction, so that a larger one than those so far is made up.
        if place > self.at {
            return Err(What::Memo);
        }
        if place >= self.memo.len() {
            self.memo.resize(place + 1, None);
        }
        self.memo[place] = Some(top);
        Ok(())
    }

    fn fetch(&mut self, place: usize) -> Step<()> {
        let id = self.memo.get(place).copied().flatten().ok_or(What::Memo)?;
        self.stack.push(id);
        Ok(())
    }
}

fn pairs(items: &[Id]) -> Step<Vec<(Id, Id)>> {
    if !items.len().is_multiple_of(2) {
        return Err(What::Items);
    }
    let pair = |pair: &[Id]| (pair[0], pair[1]);
    Ok(items.chunks_exact(2).map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `{'a': [1, 300, -1, 2**40, 2**70, 1.5], 'b': x, 'c': x, 'd': (None, True)}` with a shared
    /// `x = ['é']`, by Python 3.11 in protocols 2 and 4.
    const PLAIN: [&[u8]; 2] = [
        b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01M,\x01J\xff\xff\xff\xff\x8a\
          \x06\x00\x00\x00\x00\x00\x01\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\
          \x00\x00\x00\x00\x00eX\x01\x00\x00\x00bq\x03]q\x04X\x02\x00\x00\x00\xc3\xa9q\x05\
          aX\x01\x00\x00\x00cq\x06h\x04X\x01\x00\x00\x00dq\x07N\x88\x86q\x08u.",
        b"\x80\x04\x95M\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01M,\x01J\
          \xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x09\x00\x00\x00\x00\x00\x00\
          \x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00e\x8c\x01b\x94]\x94\x8c\x02\xc3\xa9\x94a\
          \x8c\x01c\x94h\x04\x8c\x01d\x94N\x88\x86\x94u.",
    ];

    #[test]
    fn plain_data_is_read_and_what_is_shared_stays_shared() {
        for data in PLAIN {
            let pickle = Pickle::read(data).unwrap();
            let get = |key| pickle.get(pickle.root(), key).unwrap();
            let numbers = pickle.items(get("a")).unwrap();
            let ints: Vec<Option<i64>> = numbers.iter().map(|id| pickle.int(*id)).collect();
            let expected = [Some(1), Some(300), Some(-1), Some(1 << 40), None, None];
            assert_eq!(ints, expected);
            assert_eq!(pickle.node(numbers[5]), &Node::Float(1.5));
            assert_eq!(get("b"), get("c"));
            let shared = pickle.items(get("b")).unwrap();
            assert_eq!(pickle.text(shared[0]), Some("é"));
            let pair = pickle.items(get("d")).unwrap();
            assert_eq!(pickle.node(pair[0]), &Node::None);
            assert_eq!(pickle.node(pair[1]), &Node::Bool(true));
            assert_eq!(pickle.get(pickle.root(), "e"), None);
        }
    }

    #[test]
    fn nesting_and_sharing_cost_no_more_than_the_file_is_long() {
        let depth = 1_000_000;
        let mut deep = vec![b'('; depth];
        deep.push(b']');
        deep.resize(2 * depth + 1, b'l');
        deep.push(b'.');
        assert!(Pickle::read(&deep).is_ok());
        // Each list holds the one before twice: 2 ** 200 items if they were unfolded.
        let mut bomb = b"]q\0".to_vec();
        for level in 1..=200 {
            bomb.extend_from_slice(&[b'0', b']', b'(', b'h', level - 1, b'h', level - 1, b'e']);
            bomb.extend_from_slice(&[b'q', level]);
        }
        bomb.push(b'.');
        let pickle = Pickle::read(&bomb).unwrap();
        assert_eq!(pickle.nodes.len(), 201);
        // A list that holds itself.
        let pickle = Pickle::read(b"]q\0h\0a.").unwrap();
        assert_eq!(pickle.items(pickle.root()), Some(&[pickle.root()][..]));
    }

    #[test]
    fn what_makes_objects_is_refused_and_never_run() {
        let fault = Pickle::read(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.").unwrap_err();
        assert_eq!((fault.at, fault.what), (2, What::Calls(b'c')));
        let fault = Pickle::read(b"\x80\x04\x8c\x02os\x8c\x06system\x93.").unwrap_err();
        assert_eq!(fault.what, What::Calls(0x93));
    }

    #[test]
    fn every_fault_names_its_byte() {
        for (data, at, what) in [
            (&b""[..], 0, What::Ends),
            (b"\x80\x02", 2, What::Ends),
            (b"\x80\x63", 0, What::Protocol(0x63)),
            (b"\x80\x02X\xff\xff\xff\xffabc", 2, What::Ends),
            (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc", 0, What::Ends),
            (b"X\x01\x00\x00\x00\xff.", 0, What::Text),
            (b"(e.", 1, What::Stack),
            (b"N(e.", 2, What::Items),
            (b"}(Nu.", 3, What::Items),
            (b"h\x05.", 0, What::Memo),
            (b"Nr\xff\xff\xff\xff.", 1, What::Memo),
            (b"N(0.", 2, What::Stack),
            (b"\xfe", 0, What::Unknown(0xfe)),
        ] {
            let fault = Pickle::read(data).unwrap_err();
            assert_eq!((fault.at, &fault.what), (at, &what), "{data:?}");
            assert!(fault.to_string().starts_with(&format!("byte {at}: ")));
        }
    }

    #[test]
    fn damaged_pickles_are_read_or_refused_and_nothing_else() {
        for data in PLAIN {
            for cut in 0..data.len() {
                assert!(Pickle::read(&data[..cut]).is_err());
            }
            for place in 0..data.len() {
                for value in 0..=255 {
                    let mut damaged = data.to_vec();
                    damaged[place] = value;
                    if let Ok(pickle) = Pickle::read(&damaged) {
                        let _ = pickle.get(pickle.root(), "a");
                    }
                }
            }
        }
    }
}
