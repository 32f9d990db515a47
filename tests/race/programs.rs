//! Programs of the crate under a log.

use crate::race::Log;
use crate::support::crowd::Crowd;
use crate::support::entry::Entry;
use crate::support::on_each_device;

#[test]
fn random_programs_on_many_streams_are_ordered() {
    on_each_device("random_programs_on_many_streams_are_ordered", |test| {
        for seed in 0..4 {
            let entry = Entry::new().unwrap();
            let log = Log::install(&entry);
            let runtime = test.another(entry.builder());
            Crowd::new(seed, 5, 4).run(120);
            drop(runtime);
            log.check();
        }
    });
}
