//! Numbers and ranges as error texts say them.

use core::fmt::{Debug, Display};
use core::ops::Bound;

/// A number with what it counts, whose plural ends in `s`: `1 byte`, `2 bytes`.
pub(crate) fn count(number: impl Display, one: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {one}{plural}")
}

/// A range as it is written in a program: `5..5`, `6..=5`; `5+1..` where its start is excluded.
pub(crate) fn range<T: Debug>(start: Bound<&T>, end: Bound<&T>) -> String {
    let start = match start {
        Bound::Included(start) => format!("{start:?}"),
        Bound::Excluded(before) => format!("{before:?}+1"),
        Bound::Unbounded => String::new(),
    };
    match end {
        Bound::Included(last) => format!("{start}..={last:?}"),
        Bound::Excluded(end) => format!("{start}..{end:?}"),
        Bound::Unbounded => format!("{start}.."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let said = [0, 1, 2, 11, 21].map(|number| count(number, "byte"));
        assert_eq!(
            said,
            ["0 bytes", "1 byte", "2 bytes", "11 bytes", "21 bytes"]
        );
    }

    #[test]
    fn ranges_are_said_as_they_are_written() {
        use Bound::{Excluded, Included, Unbounded};
        let said = |start, end| range::<i32>(start, end);
        assert_eq!(said(Included(&5), Excluded(&5)), "5..5");
        assert_eq!(said(Included(&6), Included(&-5)), "6..=-5");
        assert_eq!(said(Unbounded, Excluded(&0)), "..0");
        assert_eq!(said(Excluded(&7), Unbounded), "7+1..");
    }
}
