//! Reproducible pseudo-random numbers.

/// A sequence that only depends on its seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence for this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// One of `choices`, which are not empty.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}
