//! Lines of a text file, one at a time: the file may be of any size, a line may not.

use std::fmt::Display;
use std::io::{self, BufRead};

use crate::exit::Failure;

/// The longest line that is read. Those of the formats have some hundred bytes, the first one of a
/// golden trace a few thousand.
const MAX_LINE: usize = 16 << 20;

/// A text, line by line.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    /// What the file is called in messages.
    file: String,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(reader: R, file: impl Display) -> Self {
        Self {
            reader,
            file: file.to_string(),
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// The next line that is not empty, as bytes.
    pub fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        loop {
            self.buffer.clear();
            self.number += 1;
            match self.read_line() {
                Ok(false) => return Ok(None),
                Ok(true) => {}
                Err(error) => return Err(self.fault(error)),
            }
            if self.buffer.len() > MAX_LINE {
                return Err(self.fault(format_args!("it has more than {MAX_LINE} bytes")));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some(&self.buffer));
            }
        }
    }

    fn read_line(&mut self) -> io::Result<bool> {
        let limit = MAX_LINE as u64 + 1;
        let mut limited = io::Read::take(&mut self.reader, limit);
        Ok(limited.read_until(b'\n', &mut self.buffer)? > 0)
    }

    /// The number of the line that was read last, from 1.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// A fault of the line that was read last.
    pub fn fault(&self, text: impl Display) -> Failure {
        Failure::usage(format_args!("{}, line {}: {text}", self.file, self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_empty_ones_left_out() {
        let mut lines = Lines::new(&b"a\n\n \r\nb"[..], "f");
        assert_eq!(lines.next().unwrap(), Some(&b"a\n"[..]));
        assert_eq!(lines.next().unwrap(), Some(&b"b"[..]));
        assert_eq!(lines.number(), 4);
        assert_eq!(lines.fault("x").to_string(), "f, line 4: x");
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let error = Lines::new(endless, "f").next().unwrap_err();
        assert!(error.to_string().starts_with("f, line 1: it has more than"));
    }
}
