//! What the benchmarks share.

pub mod null;

/// A small generator of numbers that are random enough (xorshift64*).
#[derive(Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % limit
    }

    /// A size from 256 bytes up, over that many powers of two, each as likely as the others.
    pub fn size(&mut self, powers: u64) -> u64 {
        let power = 8 + self.below(powers);
        (1 << power) + self.below(1 << power)
    }
}
