//! Numbers that look random and are the same in every run.

/// A generator of numbers (xorshift with a multiplication).
pub struct Random(u64);

impl Random {
    /// Other seeds give other numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below a bound, which is above 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(mixed).map_or(0, |mixed| mixed % bound)
    }

    /// Any word.
    pub fn word(&mut self) -> u32 {
        // Two halves: a number has 31 bits.
        let half = |number: usize| u32::try_from(number).unwrap_or_default();
        half(self.below(1 << 16)) << 16 | half(self.below(1 << 16))
    }

    /// Bytes of any value.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 3);
        while bytes.len() < len {
            bytes.extend(self.word().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}
