//! What the texts of a spec must be like: sentences, versions, names with dots, examples.

use super::names;

/// The longest summary that still is one line of docs.
const SUMMARY: usize = 92;

/// Why the text can't open the docs of something; `None` if it can.
pub fn refuse_summary(text: &str) -> Option<String> {
    if text.contains('\n') {
        return Some("a summary is one line; the rest belongs into `docs`".into());
    }
    let length = text.chars().count();
    if length > SUMMARY {
        return Some(format!(
            "a summary has at most {SUMMARY} characters, this one {length}; the rest belongs into \
             `docs`"
        ));
    }
    refuse_sentence(text)
}

/// Why the text is no sentence. A full stop at the end also shows that nothing was cut off.
pub fn refuse_sentence(text: &str) -> Option<String> {
    (!text.ends_with('.')).then(|| {
        "ends without a full stop (a text with ` #` or `: ` in it needs quotes or a `|` block)"
            .into()
    })
}

/// Why the text can't be the docs below a summary: Markdown that ends properly.
pub fn refuse_docs(text: &str) -> Option<String> {
    if !fences_close(text) {
        return Some("a code fence is not closed".into());
    }
    if text.lines().any(|line| line.starts_with("# ")) {
        return Some("headings are written by the template".into());
    }
    if text.ends_with("```") || text.ends_with('|') {
        return None;
    }
    refuse_sentence(text)
}

/// Why the text can't be the example of `name`.
pub fn refuse_example(text: &str, name: &str) -> Option<String> {
    if text.contains("```") {
        return Some("an example is the code alone, without fences".into());
    }
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    (!words.any(|word| word == name)).then(|| format!("the example never calls `{name}`"))
}

/// Why the text is no name with dots, as `torch.accelerator` is.
pub fn refuse_dotted(text: &str) -> Option<String> {
    let good = text.split('.').all(is_word);
    (!good).then(|| format!("`{text}` is no name in torch, as `torch.accelerator` is"))
}

/// Why the text is no name that torch has outside of `torch.accelerator`, as `torch.cuda.seed` is.
pub fn refuse_elsewhere(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('.').collect();
    let good = parts.len() > 2 && parts[0] == "torch" && parts[1] != "accelerator";
    let fault =
        || format!("`{text}` is no name outside of torch.accelerator, as `torch.cuda.seed` is");
    (!good || refuse_dotted(text).is_some()).then(fault)
}

/// Why the text names no request, as `pytorch/pytorch#166802` does.
pub fn refuse_request(text: &str) -> Option<String> {
    let good = text.split_once('#').is_some_and(|(repository, number)| {
        let parts: Vec<&str> = repository.split('/').collect();
        let named = |part: &&str| part.split(['-', '.']).all(is_word);
        parts.len() == 2
            && parts.iter().all(named)
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    });
    (!good).then(|| format!("`{text}` is no request, as `pytorch/pytorch#166802` is"))
}

/// A version as three numbers.
pub fn version(text: &str) -> Option<[u32; 3]> {
    let parts: Vec<&str> = text.split('.').collect();
    let [major, minor, patch] = parts.as_slice() else {
        return None;
    };
    let number = |part: &str| {
        let plain = part.bytes().all(|b| b.is_ascii_digit());
        let padded = part.len() > 1 && part.starts_with('0');
        part.parse().ok().filter(|_| plain && !padded)
    };
    Some([number(major)?, number(minor)?, number(patch)?])
}

/// Breaks prose into lines of at most `width` characters, the later ones indented.
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let long = line.chars().count() + 1 + word.chars().count() > width;
        if long && !line.trim().is_empty() {
            lines.push(std::mem::replace(&mut line, indent.into()));
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

fn is_word(part: &str) -> bool {
    !part.is_empty()
        && !part.starts_with(|c: char| c.is_ascii_digit())
        && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !names::is_yaml_word(part)
}

fn fences_close(text: &str) -> bool {
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    fences.count() % 2 == 0
}
