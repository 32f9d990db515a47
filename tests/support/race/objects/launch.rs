//! What launches touch.

use std::collections::BTreeSet;
use std::sync::Arc;

use ash::vk::{AccessFlags, PipelineStageFlags};

use super::{Buffer, Device, Program, Recorded};
use crate::race::history::{Command, Object, Range, Touch, Work};
use crate::race::reach::Launch;
use crate::race::shader::Access;

impl Device {
    pub fn launch(
        &mut self,
        raw: u64,
        groups: Option<[u32; 3]>,
        counts: Option<(u64, u64)>,
    ) -> Result<(), String> {
        let mut used = BTreeSet::new();
        let mut touches = Vec::new();
        if let Some((buffer, offset)) = counts {
            touches.push(Touch {
                range: self.range(buffer, offset, 12, &mut used),
                stage: PipelineStageFlags::DRAW_INDIRECT,
                access: AccessFlags::INDIRECT_COMMAND_READ,
            });
        }
        let recorded = &self.lists[&raw];
        let program = Arc::clone(recorded.pipeline.as_ref().expect("a pipeline is bound"));
        used.insert(Object::Pipeline(program.id));
        let runs = groups.is_none_or(|groups| !groups.contains(&0));
        if runs {
            self.bound(recorded, &program, &mut touches, &mut used)?;
            let launch = Launch {
                push: &recorded.push,
                groups,
            };
            self.addressed(launch, &program, &mut touches, &mut used)?;
        }
        let work = Work {
            name: "a launch",
            touches,
        };
        self.record(raw, Command::Work(work), used);
        Ok(())
    }

    /// What a launch touches through descriptors.
    fn bound(
        &self,
        recorded: &Recorded,
        program: &Program,
        touches: &mut Vec<Touch>,
        used: &mut BTreeSet<Object>,
    ) -> Result<(), String> {
        for (&(index, binding), &access) in &program.uses.descriptors {
            let set = recorded.sets.get(&index).and_then(|set| self.sets.get(set));
            let set = set.ok_or("a launch whose set is not bound")?;
            used.insert(Object::DescriptorPool(set.pool));
            let elements = set.bound.range((binding, 0)..=(binding, u32::MAX));
            for (_, bound) in elements {
                let range = self.range(bound.buffer, bound.offset, bound.bytes, used);
                touch(touches, range, access, bound.is_uniform);
            }
        }
        Ok(())
    }

    /// What a launch touches through addresses.
    fn addressed(
        &self,
        launch: Launch<'_>,
        program: &Program,
        touches: &mut Vec<Touch>,
        used: &mut BTreeSet<Object>,
    ) -> Result<(), String> {
        if program.uses.far != Access::default() {
            return Err("a launch follows addresses that do not come with it".to_owned());
        }
        for (&place, &access) in &program.uses.addresses {
            let address = launch.address(place as usize);
            if address == 0 {
                continue;
            }
            let (raw, buffer, start) = (self.at(address))
                .ok_or_else(|| format!("a launch takes {address:#x}, where no buffer is"))?;
            let (lo, hi) = match (program.uses.bytes.get(&place), program.rule) {
                (Some(bytes), _) => (0, *bytes),
                (None, Some(rule)) => rule(launch),
                (None, None) => (0, self.known_bytes(address)?),
            };
            let offset = address - start;
            let left = buffer.size - offset;
            let range = self.range(raw, offset + lo, hi.min(left) - lo, used);
            touch(touches, range, access, false);
        }
        Ok(())
    }

    /// The buffer that an address lies in, and where it starts.
    fn at(&self, address: u64) -> Option<(u64, &Buffer, u64)> {
        self.buffers.iter().find_map(|(raw, buffer)| {
            let start = buffer.address?;
            (start..start + buffer.size)
                .contains(&address)
                .then_some((*raw, buffer, start))
        })
    }

    /// How many bytes lie behind an address, as far as the test has said it.
    fn known_bytes(&self, address: u64) -> Result<u64, String> {
        let newest_first = self.known.iter().rev();
        let known = newest_first.map(|(start, bytes)| (*start, start + bytes));
        let mut ends = known.filter(|(start, end)| (start..end).contains(&&address));
        let end = ends.next().map(|(_, end)| end - address);
        end.ok_or_else(|| format!("how far does a launch reach behind {address:#x}?"))
    }
}

fn touch(touches: &mut Vec<Touch>, range: Range, access: Access, is_uniform: bool) {
    let stage = PipelineStageFlags::COMPUTE_SHADER;
    let read = match is_uniform {
        true => AccessFlags::UNIFORM_READ,
        false => AccessFlags::SHADER_READ,
    };
    let made = [
        (access.reads, read),
        (access.writes, AccessFlags::SHADER_WRITE),
    ];
    let made = made.into_iter().filter(|(is_made, _)| *is_made);
    touches.extend(made.map(|(_, access)| Touch {
        range,
        stage,
        access,
    }));
}
