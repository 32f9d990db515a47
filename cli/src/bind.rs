//! Which buffer goes where: the places a kernel has for buffers, and the names they go by. Pure.

use vkaccel::{Binding, Interface, Member, Scalar, Type};

/// A place for a buffer: a descriptor, or a push constant that is an address.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The name it always has: `SET.BINDING`, or `push.N` with the number of the member.
    pub key: String,
    /// Its names in the shader, without repetition; empty where the module has none.
    pub names: Vec<String>,
    /// The one number type its memory holds, where it holds one only.
    pub scalar: Option<Scalar>,
}

impl Slot {
    fn descriptor(binding: &Binding) -> Self {
        let key = format!("{}.{}", binding.set, binding.binding);
        let only_member = match &binding.members[..] {
            [only] => &only.name,
            _ => "",
        };
        // As the shader's text calls it comes first: without a variable, members stand alone.
        let names = match &*binding.name {
            "" => vec![only_member, &binding.block_name],
            variable => vec![variable, &binding.block_name, only_member],
        };
        Self::new(key, names, &binding.members)
    }

    fn address(position: usize, member: &Member) -> Option<Self> {
        let Type::Address { members, .. } = &member.ty else {
            return None;
        };
        Some(Self::new(
            format!("push.{position}"),
            vec![&member.name],
            members,
        ))
    }

    fn new(key: String, candidates: Vec<&str>, members: &[Member]) -> Self {
        let mut names: Vec<String> = Vec::new();
        for name in candidates {
            if !name.is_empty() && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        let mut scalars = members.iter().map(|member| only_scalar(&member.ty));
        let first = scalars.next().flatten();
        let scalar = first.filter(|_| scalars.all(|scalar| scalar == first));
        Self { key, names, scalar }
    }

    fn answers_to(&self, name: &str) -> bool {
        self.key == name || self.names.iter().any(|known| known == name)
    }

    /// How a message calls it, as `x (0.1)`.
    pub fn label(&self) -> String {
        match self.names.first() {
            Some(name) => format!("{name} ({})", self.key),
            None => self.key.clone(),
        }
    }
}

/// The number type that `ty` is made of, where it is one only.
fn only_scalar(ty: &Type) -> Option<Scalar> {
    match ty {
        Type::Scalar(scalar) | Type::Vector { scalar, .. } | Type::Matrix { scalar, .. } => {
            Some(*scalar)
        }
        Type::Array { element, .. } => only_scalar(element),
        Type::Struct { members, .. } => {
            let mut scalars = members.iter().map(|member| only_scalar(&member.ty));
            let first = scalars.next().flatten();
            first.filter(|_| scalars.all(|scalar| scalar == first))
        }
        _ => None,
    }
}

/// The places for buffers, in the order of a launch's arguments.
pub fn slots(interface: &Interface) -> Vec<Slot> {
    let descriptors = interface.bindings.iter().map(Slot::descriptor);
    let members = interface
        .push_constants
        .iter()
        .flat_map(|block| &block.members);
    let addresses = members
        .enumerate()
        .filter_map(|(position, member)| Slot::address(position, member));
    descriptors.chain(addresses).collect()
}

/// The place that goes by this name.
pub fn find(slots: &[Slot], name: &str) -> Result<usize, String> {
    let found: Vec<usize> = (0..slots.len())
        .filter(|&index| slots[index].answers_to(name))
        .collect();
    match found[..] {
        [index] => Ok(index),
        [] if slots.is_empty() => Err(format!(
            "the shader has no buffer `{name}`; it takes no buffers at all"
        )),
        [] => Err(format!(
            "the shader has no buffer `{name}`; there are: {}",
            list(slots, 0..slots.len())
        )),
        _ => Err(format!(
            "`{name}` is ambiguous, use another name for it: {}",
            list(slots, found.iter().copied())
        )),
    }
}

/// Every name of each place, as `0.0 (x, X); 0.1 (y, Y)`.
fn list(slots: &[Slot], which: impl Iterator<Item = usize>) -> String {
    let entries: Vec<String> = which
        .map(|index| {
            let slot = &slots[index];
            match &slot.names[..] {
                [] => slot.key.clone(),
                names => format!("{} ({})", slot.key, names.join(", ")),
            }
        })
        .collect();
    entries.join("; ")
}

/// For each place, which of the named buffers fills it.
pub fn assign(slots: &[Slot], names: &[&str]) -> Result<Vec<usize>, String> {
    let mut filled: Vec<Option<usize>> = vec![None; slots.len()];
    for (buffer, name) in names.iter().enumerate() {
        let slot = find(slots, name).map_err(|text| format!("--buffer {name}: {text}"))?;
        if let Some(earlier) = filled[slot].replace(buffer) {
            return Err(format!(
                "--buffer {} and --buffer {name} are the same buffer, {}",
                names[earlier],
                slots[slot].label()
            ));
        }
    }
    let missing = (0..slots.len()).filter(|&slot| filled[slot].is_none());
    let missing = list(slots, missing);
    if !missing.is_empty() {
        return Err(format!(
            "no array for {missing}; give each one --buffer NAME=FILE.npy or --buffer \
             NAME=zeros:DTYPE:SHAPE"
        ));
    }
    Ok(filled.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(key: &str, names: &[&str]) -> Slot {
        Slot::new(key.to_owned(), names.to_vec(), &[])
    }

    fn two() -> Vec<Slot> {
        vec![
            slot("0.0", &["a", "A", "data"]),
            slot("0.1", &["b", "B", "data"]),
        ]
    }

    #[test]
    fn a_buffer_goes_by_each_of_its_names() {
        for (name, index) in [("a", 0), ("B", 1), ("0.0", 0), ("0.1", 1)] {
            assert_eq!(find(&two(), name), Ok(index), "{name}");
        }
    }

    #[test]
    fn a_name_that_several_have_is_ambiguous_and_lists_them() {
        let text = find(&two(), "data").unwrap_err();
        assert!(text.contains("ambiguous"), "{text}");
        assert!(
            text.contains("0.0 (a, A, data); 0.1 (b, B, data)"),
            "{text}"
        );
    }

    #[test]
    fn a_name_that_none_has_lists_those_there_are() {
        let text = find(&two(), "c").unwrap_err();
        assert!(
            text.contains("0.0 (a, A, data); 0.1 (b, B, data)"),
            "{text}"
        );
        assert!(find(&[], "c").unwrap_err().contains("no buffers at all"));
    }

    #[test]
    fn names_repeat_once_and_empty_ones_never() {
        let slot = slot("1.0", &["", "x", "x", ""]);
        assert_eq!(slot.names, ["x"]);
        assert!(!slot.answers_to(""));
        assert_eq!(slot.label(), "x (1.0)");
    }

    #[test]
    fn buffers_are_assigned_whatever_their_order() {
        assert_eq!(assign(&two(), &["B", "0.0"]), Ok(vec![1, 0]));
        assert_eq!(assign(&[], &[]), Ok(vec![]));
    }

    #[test]
    fn one_buffer_given_under_two_names_is_an_error() {
        let text = assign(&two(), &["a", "A", "b"]).unwrap_err();
        assert!(text.contains("--buffer a and --buffer A"), "{text}");
    }

    #[test]
    fn a_buffer_nobody_gave_is_named() {
        let text = assign(&two(), &["a"]).unwrap_err();
        assert!(text.starts_with("no array for 0.1 (b, B, data);"), "{text}");
    }

    #[test]
    fn memory_of_one_number_type_is_told_from_mixed() {
        let array = |scalar| Type::Array {
            element: Box::new(Type::Vector { scalar, len: 4 }),
            len: None,
            stride_bytes: 16,
        };
        assert_eq!(only_scalar(&array(Scalar::F32)), Some(Scalar::F32));
        let address = Type::Address {
            block_name: String::new(),
            members: Vec::new(),
            align_bytes: 16,
        };
        assert_eq!(only_scalar(&address), None);
    }
}
