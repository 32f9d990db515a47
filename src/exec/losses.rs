//! Recordings whose commands are gone although they were taken: the driver could not end them.
//!
//! Whoever waits for one of them is told, and so is whoever uses the stream next, once: what comes
//! behind may build on commands that never ran.

use crate::error::{Error, ErrorKind, Result};

/// The lost recordings of a stream.
#[derive(Debug, Default)]
pub(super) struct Losses {
    list: Vec<(u64, Loss)>,
    /// Whether nobody has been told of the newest.
    untold: bool,
    /// Another error that nobody has been told of.
    other: Option<Error>,
    /// What finished commands found wrong, and nobody has been told of.
    found: Option<Error>,
}

/// Why commands that were taken never ran.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    kind: ErrorKind,
    raw: Option<i32>,
    cause: String,
}

impl Losses {
    /// Recording `seq` is gone, for this reason.
    #[cold]
    pub(super) fn add(&mut self, seq: u64, cause: &Error) {
        self.list.push((seq, Loss::new(cause)));
        self.untold = true;
    }

    /// Keeps an error that is no loss for whoever comes next, unless there is one.
    #[cold]
    pub(super) fn blame(&mut self, error: Error) {
        self.other.get_or_insert(error);
    }

    /// Keeps what finished commands found wrong for whoever waits next, unless there is something.
    #[cold]
    pub(super) fn find(&mut self, error: Error) {
        self.found.get_or_insert(error);
    }

    /// What was found wrong and is still to be told, once.
    pub(super) fn tell_found(&mut self) -> Result<()> {
        self.found.take().map_or(Ok(()), Err)
    }

    /// The caller hands the error of the newest on, or there is none.
    pub(super) fn told(&mut self) {
        self.untold = false;
    }

    /// The error that is still to be told, once.
    pub(super) fn tell(&mut self) -> Result<()> {
        if let Some(error) = self.other.take() {
            return Err(error);
        }
        match self.list.last() {
            Some((_, newest)) if core::mem::take(&mut self.untold) => Err(newest.error()),
            _ => Ok(()),
        }
    }

    /// What became of recording `seq`, if it is one of them.
    pub(super) fn of(&self, seq: u64) -> Option<&Loss> {
        let found = self.list.iter().find(|(lost, _)| *lost == seq);
        found.map(|(_, loss)| loss)
    }
}

impl Loss {
    #[cold]
    pub(super) fn new(cause: &Error) -> Self {
        Self {
            kind: cause.kind(),
            raw: cause.raw(),
            cause: cause.to_string(),
        }
    }

    pub(super) fn error(&self) -> Error {
        let error = Error::new(
            self.kind,
            format!(
                "commands of this stream were dropped before they ran: {}; record them again",
                self.cause
            ),
        );
        match self.raw {
            Some(raw) => error.with_raw(raw),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_once_and_to_all_who_wait_for_it() {
        let mut losses = Losses::default();
        assert!(losses.tell().is_ok() && losses.of(3).is_none());
        let cause = Error::new(ErrorKind::OutOfHostMemory, "no room").with_raw(-1);
        losses.add(3, &cause);
        let told = losses.tell().map_err(|error| (error.kind(), error.raw()));
        assert_eq!(told, Err((ErrorKind::OutOfHostMemory, Some(-1))));
        assert!(losses.tell().is_ok());
        assert!(losses.of(3).is_some() && losses.of(3).is_some() && losses.of(4).is_none());
        losses.add(5, &cause);
        losses.told();
        assert!(losses.tell().is_ok());
    }

    #[test]
    fn what_was_found_wrong_is_told_once_and_to_waits_alone() {
        let mut losses = Losses::default();
        for number in 0..2 {
            losses.find(Error::new(ErrorKind::LimitExceeded, number.to_string()));
        }
        assert!(losses.tell().is_ok());
        let told = losses.tell_found().map_err(|error| error.to_string());
        assert!(told.is_err_and(|text| text.contains('0')));
        assert!(losses.tell_found().is_ok());
    }
}
