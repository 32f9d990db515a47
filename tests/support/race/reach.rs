//! How far kernels reach behind the addresses that they are given, which their words do not say: from
//! what the sources of the committed modules do with their numbers. Pure.

/// What of a launch says how far it reaches.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub push: &'a [u8],
    /// Nothing where they lie in memory.
    pub groups: Option<[u32; 3]>,
}

impl Launch<'_> {
    pub fn word(&self, at: usize) -> u64 {
        let bytes = self
            .push
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        u64::from(bytes.map_or(0, u32::from_ne_bytes))
    }

    pub fn address(&self, at: usize) -> u64 {
        self.word(at) | self.word(at + 4) << 32
    }
}

/// Where the bytes start and end that a launch touches, counted from an address.
type Rule = fn(Launch<'_>) -> (u64, u64);

/// By the module's name: so many words as a number among the push constants says, one word, or a fixed
/// number of bytes.
const RULES: &[(&str, Rule)] = &[
    ("add_at_index_at", |launch| {
        let at = 4 * launch.word(8);
        (at, at + 4)
    }),
    ("affine_at", |launch| (0, 4 * launch.word(24))),
    ("affine_here_at", |launch| (0, 4 * launch.word(16))),
    ("put_three_at", |_| (0, 12)),
    ("slow_at", |launch| {
        (
            0,
            launch.groups.map_or(u64::MAX, |[x, ..]| 4 * u64::from(x)),
        )
    }),
    ("store_at", |launch| (0, 4 * launch.word(12))),
];

/// The crate's own for random words, of which it is told how many to write.
const RANDOM_BITS: &[u8] = include_bytes!("../../../shaders/random_bits.spv");

/// The rule for a module, if it is one of the committed ones that take addresses.
pub fn rule(module: &[u8]) -> Option<Rule> {
    if settled(module) == settled(RANDOM_BITS) {
        return Some(|launch| (0, 4 * launch.word(40)));
    }
    let is_it = |(name, _): &&(&str, Rule)| crate::support::spirv(name) == module;
    RULES.iter().find(is_it).map(|(_, rule)| *rule)
}

/// The words of a module with whatever is `true`, `false` or left open until it is loaded as one: the crate
/// settles what it leaves open itself.
fn settled(module: &[u8]) -> Vec<u32> {
    const HEADER: usize = 5;
    const DECORATE: u32 = 71;
    const SPEC_ID: u32 = 1;
    /// `OpConstantTrue`, `OpConstantFalse`, and those that are left open.
    const TRUTHS: [u32; 4] = [41, 42, 48, 49];
    let words = module.chunks_exact(4);
    let words = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let words: Vec<u32> = words.collect();
    let (header, mut rest) = words.split_at(HEADER.min(words.len()));
    let mut settled = header.to_vec();
    while let Some(&first) = rest.first() {
        let len = ((first >> 16) as usize).clamp(1, rest.len());
        let (instruction, behind) = rest.split_at(len);
        rest = behind;
        let op = first & 0xFFFF;
        if op == DECORATE && instruction.get(2) == Some(&SPEC_ID) {
            continue;
        }
        let op = if TRUTHS.contains(&op) { TRUTHS[0] } else { op };
        settled.push(first & !0xFFFF | op);
        settled.extend(&instruction[1..]);
    }
    settled
}
