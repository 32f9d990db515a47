//! Which staging memory a copy goes through: the bookkeeping, without a driver and without a lock.
//!
//! Staging is a bounded set of chunks. A chunk belongs to one stream from its first piece until all
//! its pieces are done with and the newest command that uses it is reached, so that nobody waits for
//! another stream's work as long as the driver has memory. Pieces of a chunk follow each other.

/// The smallest chunk; one of this size is made when the device is opened, and stays.
pub(crate) const CHUNK_MIN: u64 = 64 << 10;
/// The largest chunk, which is the most that one command copies from or to the host.
pub(crate) const CHUNK_MAX: u64 = 4 << 20;
/// The bytes of all chunks, but for a smallest one for each stream that has no other.
const BOUND: u64 = (32 << 20) + CHUNK_MIN;
/// Where pieces start: a multiple of every atom of memory that is not coherent, so that no piece
/// shares one with another.
const ALIGN: u64 = 256;

/// Staging memory: `S` is the caller's segment, `T` one of its tickets.
#[derive(Debug)]
pub(crate) struct Ring<S, T> {
    chunks: Vec<Chunk<S, T>>,
    /// The bytes of all chunks, and of those that the driver is being asked for.
    held: u64,
    /// Rises with every use, so that uses can be told apart by age.
    clock: u64,
}

#[derive(Debug)]
struct Chunk<S, T> {
    id: u64,
    segment: S,
    size: u64,
    /// The stream that has it; none where it is free.
    owner: Option<u64>,
    /// The bytes that pieces have taken since it was free.
    taken: u64,
    /// The pieces that somebody holds.
    pieces: u32,
    /// The newest command that uses it, with when that was said.
    used: Option<(T, u64)>,
    /// The recording of its stream that this command is in.
    used_seq: u64,
    is_reserve: bool,
}

/// A piece of a chunk, for one copy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place<S> {
    pub(crate) chunk: u64,
    pub(crate) segment: S,
    pub(crate) offset: u64,
    /// At most what was asked for.
    pub(crate) len: u64,
}

/// A wish for a piece.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) owner: u64,
    /// The bytes that are wished for, at least 1.
    pub(crate) bytes: u64,
    /// Whether the lane was asked how far it is; growing is for when it was.
    pub(crate) polled: bool,
    /// The driver has no more memory.
    pub(crate) refused: bool,
}

impl Wish {
    pub(crate) fn new(owner: u64, bytes: u64) -> Self {
        Self {
            owner,
            bytes,
            polled: false,
            refused: false,
        }
    }
}

/// What comes next for a wish. What `released` got goes back to the driver first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RingStep<S, T> {
    Done(Place<S>),
    /// Ask the lane of this how far it is, set [`Wish::polled`], and ask again.
    Poll(T),
    /// Ask the driver for so many bytes. [`Ring::created`] then gives the piece; or say
    /// [`Ring::refused`], set [`Wish::refused`], and ask again.
    Create(u64),
    /// Wait for this, then ask again.
    Wait(T),
    /// Others hold all there is; ask again when one of them lets go.
    Busy,
    /// There is nothing, and the driver has nothing.
    Exhausted,
}

impl<S: Clone, T: Clone> Ring<S, T> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            held: 0,
            clock: 0,
        }
    }

    /// The bytes held from the driver.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// The next step for a wish. A piece may be shorter than the wish, but not shorter than both the
    /// wish and [`CHUNK_MIN`].
    pub(crate) fn take(
        &mut self,
        wish: &Wish,
        reached: &dyn Fn(&T) -> bool,
        released: &mut Vec<S>,
    ) -> RingStep<S, T> {
        let bytes = wish.bytes.min(CHUNK_MAX);
        let is_own = |chunk: &Chunk<S, T>| chunk.owner == Some(wish.owner);
        // The rest of a chunk that the stream has.
        let smallest = |chunk: &Chunk<S, T>| chunk.size;
        let fits = |chunk: &Chunk<S, T>| is_own(chunk) && bytes <= chunk.rest();
        if let Some(place) = self.place(wish.owner, bytes, fits, smallest) {
            return RingStep::Done(place);
        }
        self.refresh(reached, released);
        let size = chunk_size(bytes);
        let fits = |chunk: &Chunk<S, T>| chunk.owner.is_none() && size <= chunk.size;
        if let Some(place) = self.place(wish.owner, bytes, fits, smallest) {
            return RingStep::Done(place);
        }
        if !wish.polled
            && let Some(ticket) = self.oldest(|_| true)
        {
            return RingStep::Poll(ticket);
        }
        if !wish.refused && self.may_grow(size, released) {
            return RingStep::Create(size);
        }
        // A shorter piece: the longest of what is free, or of what the stream has.
        let least = bytes.min(CHUNK_MIN);
        let longest = |chunk: &Chunk<S, T>| u64::MAX - chunk.rest();
        let fits =
            |chunk: &Chunk<S, T>| (chunk.owner.is_none() || is_own(chunk)) && least <= chunk.rest();
        if let Some(place) = self.place(wish.owner, bytes, fits, longest) {
            return RingStep::Done(place);
        }
        if let Some(ticket) = self.oldest(is_own) {
            return RingStep::Wait(ticket);
        }
        if !wish.refused && !self.chunks.iter().any(is_own) {
            self.held += CHUNK_MIN;
            return RingStep::Create(CHUNK_MIN);
        }
        match self.oldest(|_| wish.refused) {
            Some(ticket) => RingStep::Wait(ticket),
            None if self.chunks.is_empty() && wish.refused => RingStep::Exhausted,
            None => RingStep::Busy,
        }
    }

    /// Whether it has the chunk that stays.
    pub(crate) fn has_reserve(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.is_reserve)
    }

    /// Sets the bytes of a new chunk aside, where the bound leaves them.
    fn may_grow(&mut self, size: u64, released: &mut Vec<S>) -> bool {
        if self.held + size > BOUND {
            self.release_free(released);
        }
        let may = self.held + size <= BOUND;
        self.held += if may { size } else { 0 };
        may
    }

    /// A piece of the first chunk that passes, by `order`.
    fn place(
        &mut self,
        owner: u64,
        bytes: u64,
        passes: impl Fn(&Chunk<S, T>) -> bool,
        order: impl Fn(&Chunk<S, T>) -> u64,
    ) -> Option<Place<S>> {
        let fitting = self.chunks.iter_mut().filter(|chunk| passes(chunk));
        let chunk = fitting.min_by_key(|chunk| order(chunk))?;
        let len = bytes.min(chunk.rest());
        let offset = chunk.taken;
        chunk.owner = Some(owner);
        chunk.pieces += 1;
        chunk.taken = (offset + len).next_multiple_of(ALIGN).min(chunk.size);
        Some(Place {
            chunk: chunk.id,
            segment: chunk.segment.clone(),
            offset,
            len,
        })
    }

    /// The driver gave the segment of a [`RingStep::Create`]: the wish gets a piece of it.
    pub(crate) fn created(&mut self, wish: &Wish, size: u64, segment: S) -> Place<S> {
        let len = wish.bytes.min(size);
        let chunk = Chunk {
            owner: Some(wish.owner),
            taken: len.next_multiple_of(ALIGN).min(size),
            pieces: 1,
            ..self.new_chunk(size, segment.clone())
        };
        let place = Place {
            chunk: chunk.id,
            segment,
            offset: 0,
            len,
        };
        self.chunks.push(chunk);
        place
    }

    /// Takes in a smallest chunk that stays.
    pub(crate) fn reserve(&mut self, segment: S) {
        let chunk = Chunk {
            is_reserve: true,
            ..self.new_chunk(CHUNK_MIN, segment)
        };
        self.held += chunk.size;
        self.chunks.push(chunk);
    }

    fn new_chunk(&mut self, size: u64, segment: S) -> Chunk<S, T> {
        self.clock += 1;
        Chunk {
            id: self.clock,
            segment,
            size,
            owner: None,
            taken: 0,
            pieces: 0,
            used: None,
            used_seq: 0,
            is_reserve: false,
        }
    }

    /// The driver did not give the segment of a [`RingStep::Create`].
    pub(crate) fn refused(&mut self, size: u64) {
        self.held -= size;
    }

    /// A command up to `ticket`, in recording `seq` of the stream that has the chunk, uses pieces of it.
    /// Threads of one stream may say so in another order than they recorded in.
    pub(crate) fn used(&mut self, chunk: u64, seq: u64, ticket: T) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(chunk) = self.chunk(chunk).filter(|chunk| seq >= chunk.used_seq) {
            chunk.used_seq = seq;
            chunk.used = Some((ticket, clock));
        }
    }

    /// A piece of the chunk is not held any more.
    pub(crate) fn let_go(&mut self, chunk: u64) {
        if let Some(chunk) = self.chunk(chunk) {
            chunk.pieces -= 1;
        }
    }

    /// Gives what is free back to the driver.
    pub(crate) fn trim(&mut self, reached: &dyn Fn(&T) -> bool, released: &mut Vec<S>) {
        self.refresh(reached, released);
        self.release_free(released);
    }

    fn chunk(&mut self, id: u64) -> Option<&mut Chunk<S, T>> {
        self.chunks.iter_mut().find(|chunk| chunk.id == id)
    }

    /// Frees chunks that nothing uses any more; those above the bound go back.
    fn refresh(&mut self, reached: &dyn Fn(&T) -> bool, released: &mut Vec<S>) {
        for chunk in &mut self.chunks {
            let is_used = chunk.used.as_ref().is_some_and(|(last, _)| !reached(last));
            if chunk.pieces == 0 && !is_used {
                chunk.owner = None;
                chunk.taken = 0;
                chunk.used = None;
                chunk.used_seq = 0;
            }
        }
        if self.held > BOUND {
            self.release_free(released);
        }
    }

    fn release_free(&mut self, released: &mut Vec<S>) {
        let held = &mut self.held;
        let gone = self.chunks.extract_if(.., |chunk| {
            let goes = chunk.owner.is_none() && !chunk.is_reserve;
            *held -= if goes { chunk.size } else { 0 };
            goes
        });
        released.extend(gone.map(|chunk| chunk.segment));
    }

    /// The oldest use of the chunks that pass and that nobody holds a piece of.
    fn oldest(&self, passes: impl Fn(&Chunk<S, T>) -> bool) -> Option<T> {
        let waiting = self
            .chunks
            .iter()
            .filter(|chunk| chunk.pieces == 0 && passes(chunk));
        let used = waiting.filter_map(|chunk| chunk.used.as_ref());
        used.min_by_key(|(_, clock)| *clock)
            .map(|(ticket, _)| ticket.clone())
    }
}

impl<S, T> Chunk<S, T> {
    fn rest(&self) -> u64 {
        self.size - self.taken
    }
}

/// Powers of two, so that chunks fit again.
fn chunk_size(bytes: u64) -> u64 {
    bytes.next_power_of_two().max(CHUNK_MIN)
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
