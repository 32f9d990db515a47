//! Lays out lines of code as rustfmt would, since a build script can't count on rustfmt.

/// The columns of one level of indentation.
pub const INDENT: usize = 4;

/// The longest line.
const WIDTH: usize = 100;

/// The longest list of arguments in one line of a call.
const CALL_WIDTH: usize = 60;

/// The longest list in one line of an attribute.
const ATTRIBUTE_WIDTH: usize = 70;

/// The columns that docs may take, for text that is moved to the right by `indent`.
pub fn docs_width(indent: usize) -> usize {
    WIDTH - indent - "/// ".len()
}

/// `HEAD(ARGS)RESULT END`, in one line where it fits.
pub fn signature(
    head: &str,
    args: &[String],
    result: &str,
    end: &str,
    indent: usize,
) -> Vec<String> {
    let line = format!("{head}({}){result}{end}", args.join(", "));
    if indent + line.len() <= WIDTH {
        return vec![line];
    }
    broken(&format!("{head}("), args, &format!("){result}{end}"))
}

/// `PATH(ARGS)`, in one line where it fits.
pub fn call(path: &str, args: &[String], indent: usize) -> Vec<String> {
    let list = args.join(", ");
    let line = format!("{path}({list})");
    if indent + line.len() <= WIDTH && list.len() <= CALL_WIDTH {
        return vec![line];
    }
    broken(&format!("{path}("), args, ")")
}

/// `#[NAME(ITEMS)]`, in one line where it fits.
pub fn attribute(name: &str, items: &[String], indent: usize) -> Vec<String> {
    let list = items.join(", ");
    let line = format!("#[{name}({list})]");
    if indent + line.len() <= WIDTH && list.len() <= ATTRIBUTE_WIDTH {
        return vec![line];
    }
    let mut lines = broken(&format!("#[{name}("), items, ")]");
    // Attributes end their lists without a comma.
    let last = lines.len() - 2;
    lines[last].pop();
    lines
}

/// `PATH{NAMES};`, filling lines where there is more than one.
pub fn import(path: &str, names: &[&str], indent: usize) -> Vec<String> {
    if let [name] = names {
        return vec![format!("{path}{name};")];
    }
    let line = format!("{path}{{{}}};", names.join(", "));
    // rustfmt leaves room for a comma and a space that it then doesn't write.
    if indent + line.len() <= WIDTH - 2 {
        return vec![line];
    }
    let mut lines = vec![format!("{path}{{")];
    let mut filled = " ".repeat(INDENT);
    for name in names {
        let separator = usize::from(!filled.trim().is_empty());
        // Here, too, it leaves room for a space behind the comma.
        if indent + filled.len() + separator + name.len() + 1 >= WIDTH {
            lines.push(std::mem::replace(&mut filled, " ".repeat(INDENT)));
        } else if separator == 1 {
            filled.push(' ');
        }
        filled.push_str(name);
        filled.push(',');
    }
    lines.push(filled);
    lines.push("};".into());
    lines
}

fn broken(open: &str, items: &[String], close: &str) -> Vec<String> {
    let mut lines = vec![open.to_string()];
    lines.extend(
        items
            .iter()
            .map(|item| format!("{}{item},", " ".repeat(INDENT))),
    );
    lines.push(close.into());
    lines
}
