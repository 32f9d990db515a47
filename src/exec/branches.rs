//! What comes before what in a capture of several streams. Pure.
//!
//! Each captured stream is a branch. A clock says how many commands of each branch come before a point.

/// How many commands of each branch come before a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<usize>);

impl Clock {
    fn of(&self, branch: usize) -> usize {
        self.0.get(branch).copied().unwrap_or(0)
    }

    fn raise(&mut self, branch: usize, count: usize) {
        if self.0.len() <= branch {
            self.0.resize(branch + 1, 0);
        }
        self.0[branch] = self.0[branch].max(count);
    }

    fn merge(&mut self, other: &Self) {
        for (branch, &count) in other.0.iter().enumerate() {
            self.raise(branch, count);
        }
    }
}

/// The branches of a capture; the first is the one that it began on.
#[derive(Debug, Default)]
pub(crate) struct Branches {
    /// What comes before the next command of each.
    clocks: Vec<Clock>,
}

impl Branches {
    /// Begins a branch behind what a clock says; gives its number.
    pub(crate) fn add(&mut self, behind: &Clock) -> usize {
        self.clocks.push(behind.clone());
        self.clocks.len() - 1
    }

    /// What comes before the next command of a branch.
    pub(crate) fn clock(&self, branch: usize) -> &Clock {
        &self.clocks[branch]
    }

    /// Puts what comes next on a branch behind what a clock says.
    pub(crate) fn merge(&mut self, branch: usize, clock: &Clock) {
        self.clocks[branch].merge(clock);
    }

    /// A branch has more commands.
    pub(crate) fn advance(&mut self, branch: usize, count: usize) {
        let before = self.clocks[branch].of(branch);
        self.clocks[branch].raise(branch, before + count);
    }

    /// The branches that have commands which nothing puts before the end of the first.
    pub(crate) fn unjoined(&self) -> Vec<usize> {
        let Some(first) = self.clocks.first() else {
            return Vec::new();
        };
        let all = self.clocks.iter().enumerate();
        let loose = all.filter(|(branch, clock)| clock.of(*branch) > first.of(*branch));
        loose.map(|(branch, _)| branch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_joined_once_the_first_waits_for_all_of_it() {
        let mut branches = Branches::default();
        let first = branches.add(&Clock::default());
        branches.advance(first, 2);
        let side = branches.add(&branches.clock(first).clone());
        assert!(branches.unjoined().is_empty(), "it has no commands");
        branches.advance(side, 1);
        let early = branches.clock(side).clone();
        branches.advance(side, 1);
        assert_eq!(branches.unjoined(), [side]);
        branches.merge(first, &early);
        assert_eq!(branches.unjoined(), [side], "one command is left out");
        branches.merge(first, &branches.clock(side).clone());
        assert!(branches.unjoined().is_empty());
        assert_eq!(*branches.clock(first), Clock(vec![2, 2]));
    }

    #[test]
    fn branches_join_through_each_other() {
        let mut branches = Branches::default();
        let first = branches.add(&Clock::default());
        let sides: Vec<_> = (0..3).map(|_| branches.add(&Clock::default())).collect();
        for &side in &sides {
            branches.advance(side, 3);
        }
        assert_eq!(branches.unjoined(), sides);
        for (&from, &to) in sides.iter().zip(&sides[1..]) {
            branches.merge(to, &branches.clock(from).clone());
        }
        branches.merge(first, &branches.clock(sides[2]).clone());
        assert!(branches.unjoined().is_empty());
    }
}
