//! Damaged modules: whatever happens to the words, there is an answer, and soon.

use std::time::{Duration, Instant};

use super::spirv::test_data::{names, words};
use super::spirv::{Module, words_from_bytes};
use super::{clamp, reflect, safety};

const MUTATIONS: u32 = 24_000;

/// What one module may take. It takes about a millisecond, but the machine may be busy; what this
/// finds is work that grows without bound.
const LIMIT: Duration = Duration::from_secs(60);

/// A small generator of numbers (xorshift64*), the same on every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let [.., a, b, c, d] = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound.max(1)
    }
}

/// Changes a module in one of the ways in which files go wrong, or in which somebody would try.
fn damage(words: &mut Vec<u32>, numbers: &mut Numbers) {
    let at = numbers.below(words.len());
    let other = numbers.below(words.len());
    if words.len() < 5 {
        return;
    }
    match numbers.below(10) {
        0 => words[at] ^= 1 << numbers.below(32),
        1 => words[at] = numbers.next(),
        // Most words are ids, so a small number is another id.
        2 | 3 => words[at] = numbers.next() % words[3].clamp(1, 1 << 16),
        4 => words.swap(at, other),
        5 => words[at] = words[other],
        6 => drop(words.drain(at..(at + 1 + numbers.below(8)).min(words.len()))),
        7 => {
            let piece = words[at..(at + 1 + numbers.below(16)).min(words.len())].to_vec();
            let place = other.max(5).min(words.len());
            words.splice(place..place, piece);
        }
        8 => words[at] = [0, 1, u32::MAX, 0x7fff_ffff, 0x8000_0000][numbers.below(5)],
        _ => words.truncate(at),
    }
}

/// Goes through everything that reads a module; whether it was read at all, and to the end.
fn read(words: &[u32], specialization: &[(u32, u64)]) -> (bool, bool) {
    let Ok(module) = Module::parse(words) else {
        return (false, false);
    };
    let mut reflected = reflect::reflect(&module, None, specialization).is_ok();
    for (name, _) in module.entry_points() {
        reflected |= reflect::reflect(&module, Some(name), &[]).is_ok();
    }
    let safe = safety::check(&module, specialization).is_ok();
    match clamp::clamp(&module) {
        Ok(clamped) => assert!(Module::parse(&clamped).is_ok(), "the result is no module"),
        Err(_) => assert!(!safe, "what cannot be clamped is not safe"),
    }
    (true, reflected)
}

#[test]
fn damaged_modules_give_errors_and_never_panics() {
    let modules: Vec<Vec<u32>> = names().iter().map(|name| words(name)).collect();
    let mut numbers = Numbers(0x5eed);
    let (mut read_at_all, mut to_the_end) = (0, 0);
    for mutation in 0..MUTATIONS {
        let mut words = modules[numbers.below(modules.len())].clone();
        for _ in 0..=numbers.below(3) {
            damage(&mut words, &mut numbers);
        }
        let given = [(numbers.next() % 8, u64::from(numbers.next()))];
        let began = Instant::now();
        let (parsed, reflected) = read(&words, &given);
        assert!(began.elapsed() < LIMIT, "mutation {mutation}");
        read_at_all += u32::from(parsed);
        to_the_end += u32::from(reflected);
    }
    // Otherwise the damage is so coarse that nothing behind the first check is tried.
    assert!(read_at_all > MUTATIONS / 8, "{read_at_all} were read");
    assert!(to_the_end > MUTATIONS / 16, "{to_the_end} were reflected");
}

#[test]
fn any_bytes_give_an_answer() {
    let mut numbers = Numbers(77);
    let whole: Vec<u8> = words("half").iter().flat_map(|w| w.to_ne_bytes()).collect();
    for len in 0..whole.len() {
        let mut bytes = whole[..len].to_vec();
        if numbers.next().is_multiple_of(2) && len > 0 {
            let at = numbers.below(len);
            bytes[at] = numbers.next().to_le_bytes()[0];
        }
        if let Ok(words) = words_from_bytes(&bytes) {
            read(&words, &[]);
        }
    }
}

/// A module around these words, which come after the memory model and the entry point.
fn around(globals: &[u32], bound: u32) -> Vec<u32> {
    let mut words = vec![0x0723_0203, 0x0001_0300, 0, bound, 0];
    words.extend([2 << 16 | 17, 1, 3 << 16 | 14, 0, 1]);
    // OpEntryPoint GLCompute %1 "main", OpExecutionMode %1 LocalSize 1 1 1
    words.extend([5 << 16 | 15, 5, 1, 0x6e69_616d, 0]);
    words.extend([6 << 16 | 16, 1, 17, 1, 1, 1]);
    // %2 = OpTypeVoid, %3 = OpTypeFunction %2, %4 = OpTypeInt 32 0, %5 = OpConstant %4 2
    words.extend([2 << 16 | 19, 2, 3 << 16 | 33, 3, 2]);
    words.extend([4 << 16 | 21, 4, 32, 0, 4 << 16 | 43, 4, 5, 2]);
    words.extend(globals);
    // The function of one block.
    words.extend([5 << 16 | 54, 2, 1, 0, 3, 2 << 16 | 248, bound - 1]);
    words.extend([1 << 16 | 253, 1 << 16 | 56]);
    words
}

#[test]
fn types_deep_in_each_other_end_at_a_limit() {
    // Structs of two members each of the struct before: small in words, huge as a tree.
    const DEPTH: u32 = 20_000;
    let mut decorations = Vec::new();
    let mut types = Vec::new();
    for id in 6..6 + DEPTH {
        let member = if id == 6 { 4 } else { id - 1 };
        types.extend([4 << 16 | 30, id, member, member]);
        decorations.extend([5 << 16 | 72, id, 0, 35, 0, 5 << 16 | 72, id, 1, 35, 4]);
    }
    let (last, pointer, variable) = (5 + DEPTH, 6 + DEPTH, 7 + DEPTH);
    for class in [12, 9, 4] {
        let mut globals = decorations.clone();
        for (decoration, value) in [(33, 0), (34, 0)] {
            globals.extend([4 << 16 | 71, variable, decoration, value]);
        }
        globals.extend(&types);
        globals.extend([4 << 16 | 32, pointer, class, last]);
        globals.extend([4 << 16 | 59, pointer, variable, class]);
        let words = around(&globals, variable + 2);
        let began = Instant::now();
        let (parsed, _) = read(&words, &[]);
        assert!(parsed, "class {class}");
        assert!(began.elapsed() < LIMIT, "class {class}");
    }
}

#[test]
fn a_module_of_arrays_of_arrays_has_a_size_or_an_error() {
    // Each is 2^31 times as large as the one before.
    let mut globals = vec![4 << 16 | 43, 4, 6, 0x7fff_ffff, 4 << 16 | 28, 7, 4, 6];
    for id in 8..40 {
        globals.extend([4 << 16 | 28, id, id - 1, 6]);
    }
    globals.extend([4 << 16 | 32, 40, 4, 39, 4 << 16 | 59, 40, 41, 4]);
    let module = Module::parse(&around(&globals, 50)).unwrap();
    let interface = reflect::reflect(&module, None, &[]).unwrap();
    assert_eq!(interface.shared_memory_bytes, u64::MAX);
}
