//! Waits for what comes, and ends of what is in use. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Facts, Fault};
use super::history::{Event, History, Object, Spot};

/// Waits that were submitted before their signals, and ends of things in use.
pub fn promises(history: &History) -> Vec<Fault> {
    let facts = Facts::of(history);
    let mut faults = Vec::new();
    let mut signalled = BTreeSet::new();
    let mut seen = BTreeMap::<u64, u64>::new();
    // The submissions that a thing is used by, until they are seen to be over.
    let mut users = BTreeMap::<Object, Vec<usize>>::new();
    for (at, event) in history.events.iter().enumerate() {
        match event {
            Event::Submission(submission) => {
                for (part, wait) in submission.waits.iter().enumerate() {
                    let point = wait.point;
                    let reached = facts.reached(point.semaphore, point.value);
                    if !signalled.contains(&(point.semaphore, reached)) {
                        let spot = Spot {
                            event: at,
                            part,
                            command: 0,
                        };
                        faults.push(Fault::Wait { spot, wait: *wait });
                    }
                }
                let signals = submission.signals.iter();
                signalled.extend(signals.map(|signal| (signal.semaphore, signal.value)));
                for object in submission.lists.iter().flat_map(|list| &list.uses) {
                    users.entry(*object).or_default().push(at);
                }
            }
            Event::Seen(point) => {
                let seen = seen.entry(point.semaphore).or_default();
                *seen = point.value.max(*seen);
            }
            Event::Ends(object) => {
                for submission in users.remove(object).unwrap_or_default() {
                    if !is_over(history, submission, &seen) {
                        faults.push(Fault::Ends {
                            object: *object,
                            event: at,
                            submission,
                        });
                    }
                }
            }
            Event::HostReads(_) | Event::HostWrites(_) => {}
        }
    }
    faults
}

/// Whether the host has seen that a submission is over.
fn is_over(history: &History, submission: usize, seen: &BTreeMap<u64, u64>) -> bool {
    let Event::Submission(submission) = &history.events[submission] else {
        return true;
    };
    let mut signals = submission.signals.iter();
    signals.any(|signal| seen.get(&signal.semaphore) >= Some(&signal.value))
}
