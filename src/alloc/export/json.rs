//! Texts and numbers as JSON has them.

use std::io::{self, Write};

/// Writes a text, in quotes. It can stand inside of an HTML script, too.
pub(super) fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(b"\"")?;
    let mut rest = text;
    while let Some(place) = rest.find(|c| matches!(c, '\0'..='\x1f' | '"' | '\\' | '<' | '>')) {
        let (plain, special) = rest.split_at(place);
        out.write_all(plain.as_bytes())?;
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => out.write_all(b"\\\"")?,
            Some('\\') => out.write_all(b"\\\\")?,
            Some('\n') => out.write_all(b"\\n")?,
            Some(other) => write!(out, "\\u{:04x}", u32::from(other))?,
            None => {}
        }
        rest = characters.as_str();
    }
    out.write_all(rest.as_bytes())?;
    out.write_all(b"\"")
}

/// Writes what JSON has for a number that may be missing.
pub(super) fn optional(out: &mut impl Write, number: Option<impl ToString>) -> io::Result<()> {
    match number {
        Some(number) => out.write_all(number.to_string().as_bytes()),
        None => out.write_all(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &str) -> String {
        let mut out = Vec::new();
        text(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_comes_back_from_any_reader_and_ends_no_script() {
        for value in [
            "",
            "plain",
            "a\"b\\c\nd\te\u{1}f",
            "</script><!--",
            "ä€😀\u{2028}",
        ] {
            let json = written(value);
            let back: String = serde_yaml::from_str(&json).unwrap();
            assert_eq!(back, value);
            assert!(!json.contains('<') && !json.contains('\n'), "{json}");
        }
    }
}
