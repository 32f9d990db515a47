//! Rules that both files of the spec keep.

use std::collections::BTreeSet;

use super::fault::Faults;
use super::fields::Word;
use super::names;

/// Notes a fault of a word, unless the word is empty, which is noted already.
pub fn refuse(word: &Word, fault: Option<String>, faults: &Faults) {
    if let Some(fault) = fault.filter(|_| !word.text.is_empty()) {
        faults.add(&word.at, fault);
    }
}

/// Whether the word is an origin; notes it if it is none.
pub fn check_origin(origin: &Word, faults: &Faults) -> bool {
    let known = ["documented", "runtime", "extension"].contains(&origin.as_str());
    let fault = format!(
        "unknown origin `{}`; expected documented, runtime or extension",
        origin.as_str()
    );
    refuse(origin, (!known).then_some(fault), faults);
    known
}

/// Notes a proof that has not the form of a test's name.
pub fn check_proof(proof: Option<&Word>, faults: &Faults) {
    if let Some(proof) = proof {
        let mut parts = proof.as_str().split("::");
        let good = proof.as_str().contains("::")
            && parts.all(|part| names::refuse_snake_name(part).is_none());
        let fault = "names no test, as `stream::waits_for_all` does".to_string();
        refuse(proof, (!good).then_some(fault), faults);
    }
}

/// The names seen so far in one place, to find the second of one name.
#[derive(Default)]
pub struct Names<'a>(BTreeSet<&'a str>);

impl<'a> Names<'a> {
    pub fn add(&mut self, name: &'a Word, faults: &Faults) {
        self.add_as(name.as_str(), name, faults);
    }

    pub fn add_as(&mut self, name: &'a str, word: &Word, faults: &Faults) {
        if !name.is_empty() && !self.0.insert(name) {
            faults.add(&word.at, format!("`{name}` is declared twice"));
        }
    }
}
