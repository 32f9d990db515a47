//! Bytes to words, and what a thing that is not a SPIR-V binary is instead.

use super::MAGIC;
use crate::error::{Error, ErrorKind, Result};

/// The words of a SPIR-V binary that was read as bytes, as from a file.
///
/// # Errors
///
/// `InvalidModule` for bytes that are no SPIR-V binary in this machine's word order; the text says
/// what they are instead (nothing, text, the other word order, cut off) and what to do.
pub(crate) fn words_from_bytes(bytes: &[u8]) -> Result<Vec<u32>> {
    if let Some(error) = not_a_module(bytes) {
        return Err(error);
    }
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(invalid(format!(
            "{} bytes are no whole number of 32-bit words: the SPIR-V module is cut off, or was \
             changed on its way (a transfer in text mode does that); get the file again",
            bytes.len()
        )));
    }
    Ok(words.iter().map(|word| u32::from_ne_bytes(*word)).collect())
}

/// Why these bytes are no SPIR-V binary in this machine's word order; `None` where they begin
/// like one.
pub(super) fn not_a_module(bytes: &[u8]) -> Option<Error> {
    if bytes.is_empty() {
        return Some(invalid("the SPIR-V module is empty: it has not one byte"));
    }
    if bytes.starts_with(&MAGIC.to_ne_bytes()) {
        return None;
    }
    if bytes.starts_with(&MAGIC.swap_bytes().to_ne_bytes()) {
        return Some(invalid(
            "the SPIR-V module is in the other word order: its first word is the magic number \
             with its bytes swapped; swap the four bytes of every word, or write it on a machine \
             of the same byte order",
        ));
    }
    if let Some(advice) = text_advice(bytes) {
        return Some(invalid(format!(
            "this is text, not a SPIR-V binary: {advice}"
        )));
    }
    if bytes.len() < 4 {
        return Some(invalid(format!(
            "the SPIR-V module is cut off: {} bytes are less than the magic number",
            bytes.len()
        )));
    }
    let shown: Vec<String> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
    Some(invalid(format!(
        "this is no SPIR-V module: it begins with the bytes {}, a module begins with 03 02 23 07; \
         compile the shader with glslc or another SPIR-V compiler",
        shown.join(" ")
    )))
}

/// What to do with something that reads as text; `None` where it does not.
fn text_advice(bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(256)];
    // A character cut in two by the end of the head is still text.
    let text = match core::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            core::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let printable = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\u{c}');
    let text = text.trim_end_matches('\0');
    if text.is_empty() || !text.chars().all(printable) {
        return None;
    }
    let text = text.trim_start_matches('\u{feff}').trim_start();
    Some(if text.starts_with("; SPIR-V") || text.starts_with("Op") {
        "SPIR-V assembly; assemble it with spirv-as"
    } else if text.starts_with('#') || text.starts_with("//") || text.starts_with("/*") {
        "it looks like GLSL; pass it as a string, or compile it with glslc"
    } else {
        "pass GLSL as a string, assemble SPIR-V assembly with spirv-as"
    })
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidModule, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        let error = words_from_bytes(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModule);
        error.to_string()
    }

    #[test]
    fn each_thing_that_is_no_module_is_called_by_its_name() {
        assert!(refusal(b"").contains("empty"));
        assert!(refusal(b"#version 450\nvoid main() {}").contains("GLSL"));
        assert!(refusal(b"; SPIR-V\n; Version: 1.0").contains("spirv-as"));
        assert!(refusal("hällo".as_bytes()).contains("text"));
        let mut swapped = MAGIC.to_be_bytes().to_vec();
        swapped.extend([0; 16]);
        if cfg!(target_endian = "little") {
            assert!(refusal(&swapped).contains("word order"));
        }
        assert!(refusal(&[0x7f, b'E', b'L', b'F', 2, 1]).contains("7f 45 4c 46"));
        assert!(refusal(&[0x03, 0x02]).contains("cut off"));
        let zeros = refusal(&[0; 64]);
        assert!(zeros.contains("00 00 00 00"), "{zeros}");
        assert!(!zeros.contains("text"), "{zeros}");
    }

    #[test]
    fn an_odd_number_of_bytes_is_said() {
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([0; 17]);
        assert!(refusal(&bytes).contains("21 bytes"));
    }

    #[test]
    fn whole_words_come_back_in_order() {
        let words = [MAGIC, 0x0001_0000, 7];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(words_from_bytes(&bytes).unwrap(), words);
    }
}
