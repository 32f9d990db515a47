//! How many workgroups a launch runs.

use crate::error::{Details, Error, ErrorKind, Result};

const AXES: [char; 3] = ['x', 'y', 'z'];

/// A count along one, two or three axes; an axis that is left out counts 1.
///
/// It comes from an integer, or from an array or a tuple of two or three integers of one type:
/// `i32`, `i64`, `u32`, `u64` or `usize`. A negative number is an error of the call that uses it.
///
/// # Example
///
/// ```
/// use vkaccel::Extent;
///
/// assert_eq!(Extent::from(10), Extent::from([10, 1, 1]));
/// assert_eq!(Extent::from((4u32, 2)), Extent::from([4u64, 2]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent([i128; 3]);

macro_rules! extent_from {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Extent {
            fn from(x: $integer) -> Self {
                Self::from([x, 1, 1])
            }
        }

        impl From<[$integer; 2]> for Extent {
            fn from([x, y]: [$integer; 2]) -> Self {
                Self::from([x, y, 1])
            }
        }

        impl From<[$integer; 3]> for Extent {
            fn from(axes: [$integer; 3]) -> Self {
                // No integer type of Rust's is wider than `i128`, so nothing is lost.
                Self(axes.map(|count| count as i128))
            }
        }

        impl From<($integer, $integer)> for Extent {
            fn from((x, y): ($integer, $integer)) -> Self {
                Self::from([x, y, 1])
            }
        }

        impl From<($integer, $integer, $integer)> for Extent {
            fn from((x, y, z): ($integer, $integer, $integer)) -> Self {
                Self::from([x, y, z])
            }
        }
    )*};
}

extent_from!(i32, i64, u32, u64, usize);

/// How much a launch runs: a count of workgroups, or a count of elements with one invocation each.
///
/// A grid with a zero along any axis runs nothing, and launching it succeeds.
///
/// # Example
///
/// ```
/// use vkaccel::Grid;
///
/// let one_by_one = Grid::elements(1000); // enough workgroups for 1000 invocations
/// let tiles = Grid::groups([32, 32]);
/// let volume = Grid::groups((1, 2, 3));
/// # let _ = (one_by_one, tiles, volume);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    unit: Unit,
    extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Unit {
    Groups,
    Elements,
}

impl Grid {
    /// So many workgroups along each axis.
    ///
    /// # Example
    ///
    /// ```
    /// let grid = vkaccel::Grid::groups([64, 16]);
    /// # let _ = grid;
    /// ```
    pub fn groups(groups: impl Into<Extent>) -> Self {
        Self {
            unit: Unit::Groups,
            extent: groups.into(),
        }
    }

    /// At least so many invocations along each axis: the count divided by the kernel's local size,
    /// rounded up.
    ///
    /// The last workgroup may run invocations past the count, so the shader compares its index with
    /// the count that it was given. A count that needs more workgroups along its axis than the device
    /// takes is refused by the launch: it is not spread over other axes, of which the shader knows nothing.
    ///
    /// # Example
    ///
    /// ```
    /// let grid = vkaccel::Grid::elements(1_000_003);
    /// # let _ = grid;
    /// ```
    pub fn elements(elements: impl Into<Extent>) -> Self {
        Self {
            unit: Unit::Elements,
            extent: elements.into(),
        }
    }

    /// The workgroups along each axis: all zero where any axis has none.
    ///
    /// `limits` is the device's maxComputeWorkGroupCount.
    #[inline]
    pub(crate) fn resolve(&self, local_size: [u32; 3], limits: [u32; 3]) -> Result<[u32; 3]> {
        match self.few(local_size, limits) {
            Some(groups) => Ok(groups),
            None => self.resolve_any(local_size, limits),
        }
    }

    /// The same for counts that are ordinary, without wide numbers, which take long to divide; nothing for
    /// others.
    #[inline]
    fn few(&self, local_size: [u32; 3], limits: [u32; 3]) -> Option<[u32; 3]> {
        let mut groups = [0; 3];
        for axis in 0..3 {
            let count = u32::try_from(self.extent.0[axis]).ok()?;
            let needed = match self.unit {
                Unit::Elements if count > 1 => count.div_ceil(local_size[axis].max(1)),
                _ => count,
            };
            if needed == 0 || needed > limits[axis] {
                return None;
            }
            groups[axis] = needed;
        }
        Some(groups)
    }

    #[cold]
    fn resolve_any(&self, local_size: [u32; 3], limits: [u32; 3]) -> Result<[u32; 3]> {
        let counts = self.extent.0;
        if let Some(axis) = (0..3).find(|&axis| counts[axis] < 0) {
            return Err(self.negative(axis));
        }
        if counts.contains(&0) {
            return Ok([0; 3]);
        }
        let mut groups = [0; 3];
        for axis in 0..3 {
            let needed = match self.unit {
                Unit::Groups => counts[axis],
                // A local size of 0 is refused when the kernel is built.
                Unit::Elements => {
                    let local = i128::from(local_size[axis].max(1));
                    (counts[axis] + local - 1) / local
                }
            };
            groups[axis] = u32::try_from(needed)
                .ok()
                .filter(|&needed| needed <= limits[axis])
                .ok_or_else(|| self.too_large(axis, needed, local_size[axis], limits[axis]))?;
        }
        Ok(groups)
    }

    #[cold]
    fn negative(&self, axis: usize) -> Error {
        let unit = match self.unit {
            Unit::Groups => "workgroups",
            Unit::Elements => "elements",
        };
        Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "a grid of {} {unit} along {} was asked for; a count is 0 or more",
                self.extent.0[axis], AXES[axis],
            ),
        )
    }

    #[cold]
    fn too_large(&self, axis: usize, needed: i128, local_size: u32, limit: u32) -> Error {
        let name = format!("maxComputeWorkGroupCount[{axis}]");
        let letter = AXES[axis];
        let (asked, advice) = match self.unit {
            Unit::Groups => (
                format!("{needed} workgroups along {letter}"),
                "use another axis as well, or several launches",
            ),
            Unit::Elements => (
                format!(
                    "{} elements along {letter} need {needed} workgroups at a local size of \
                     {local_size}",
                    self.extent.0[axis],
                ),
                "use a larger local size, more elements per invocation, another axis as well, or \
                 several launches",
            ),
        };
        Error::new(
            ErrorKind::LimitExceeded,
            format!(
                "the grid is too large along {letter}: {asked}, and the device takes {limit} \
                 ({name}); {advice}",
            ),
        )
        .with_details(Details::Limit {
            name,
            asked: u64::try_from(needed).unwrap_or(u64::MAX),
            limit: u64::from(limit),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: [u32; 3] = [65535; 3];

    fn resolve(grid: Grid, local_size: [u32; 3]) -> [u32; 3] {
        grid.resolve(local_size, LIMITS).unwrap()
    }

    #[test]
    fn plain_literals_and_every_integer_type_make_an_extent() {
        let n: usize = 1000;
        let (width, height) = (640u32, 480u32);
        assert_eq!(resolve(Grid::elements(1000), [64, 1, 1]), [16, 1, 1]);
        assert_eq!(resolve(Grid::elements(n), [64, 1, 1]), [16, 1, 1]);
        assert_eq!(resolve(Grid::elements([n, 2]), [64, 1, 1]), [16, 2, 1]);
        assert_eq!(
            resolve(Grid::elements((width, height)), [16, 16, 1]),
            [40, 30, 1]
        );
        assert_eq!(resolve(Grid::groups((width, 1)), [1; 3]), [640, 1, 1]);
        assert_eq!(resolve(Grid::groups(10), [1; 3]), [10, 1, 1]);
        assert_eq!(resolve(Grid::groups([32, 32]), [1; 3]), [32, 32, 1]);
        assert_eq!(resolve(Grid::groups((1, 2, 3)), [1; 3]), [1, 2, 3]);
        assert_eq!(resolve(Grid::groups(7u64), [1; 3]), [7, 1, 1]);
        assert_eq!(resolve(Grid::groups([7i64, 8]), [1; 3]), [7, 8, 1]);
    }

    #[test]
    fn ordinary_counts_come_to_the_same_as_any_others() {
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut below = |bound: u32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            u32::try_from(state % u64::from(bound)).unwrap()
        };
        let mut seen = [0; 2];
        for _ in 0..20_000 {
            let extent =
                [(); 3].map(|()| [below(4), below(200), below(u32::MAX)][below(3) as usize]);
            let local_size = [(); 3].map(|()| below(130));
            let limits = [(); 3].map(|()| [below(u32::MAX), u32::MAX][below(2) as usize]);
            for grid in [Grid::groups(extent), Grid::elements(extent)] {
                let few = grid.few(local_size, limits);
                seen[usize::from(few.is_some())] += 1;
                if few.is_some() {
                    assert_eq!(grid.resolve_any(local_size, limits).ok(), few, "{grid:?}");
                }
            }
        }
        assert!(seen.iter().all(|&count| count > 1000), "{seen:?}");
    }

    #[test]
    fn a_zero_along_any_axis_runs_nothing() {
        for grid in [
            Grid::groups((0, 1, 1)),
            Grid::groups((1, 0, 5)),
            Grid::groups([1, 1, 0]),
            Grid::elements(0),
            Grid::elements((0, 1_000_000_000)),
        ] {
            assert_eq!(resolve(grid, [64, 1, 1]), [0; 3]);
        }
    }

    #[test]
    fn one_past_the_limit_is_refused_on_each_axis_with_both_numbers() {
        for axis in 0..3 {
            let mut groups = [1u32; 3];
            groups[axis] = 65535;
            assert_eq!(resolve(Grid::groups(groups), [1; 3]), groups);
            groups[axis] = 65536;
            let error = Grid::groups(groups).resolve([1; 3], LIMITS).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LimitExceeded);
            assert_eq!(
                error.details(),
                Some(&Details::Limit {
                    name: format!("maxComputeWorkGroupCount[{axis}]"),
                    asked: 65536,
                    limit: 65535,
                })
            );
            let text = error.to_string();
            for part in [&format!("along {}", AXES[axis]), "65536", "65535"] {
                assert!(text.contains(part), "{text}");
            }
        }
    }

    #[test]
    fn each_axis_has_a_limit_of_its_own() {
        let limits = [1 << 30, 100, 10];
        let grid = Grid::groups([1 << 30, 100, 10]);
        assert_eq!(grid.resolve([1; 3], limits).unwrap(), [1 << 30, 100, 10]);
        let grid = Grid::groups([1, 1, 11]);
        assert!(grid.resolve([1; 3], limits).is_err());
    }

    #[test]
    fn elements_are_rounded_up_and_never_overflow() {
        for (elements, groups) in [(1, 1), (63, 1), (64, 1), (65, 2), (4_194_240, 65535)] {
            assert_eq!(
                resolve(Grid::elements(elements), [64, 1, 1]),
                [groups, 1, 1]
            );
        }
        let error = Grid::elements(4_194_241)
            .resolve([64, 1, 1], LIMITS)
            .unwrap_err();
        let text = error.to_string();
        for part in ["4194241 elements along x", "65536", "65535", "64"] {
            assert!(text.contains(part), "{text}");
        }
        let error = Grid::elements(u64::MAX)
            .resolve([1; 3], LIMITS)
            .unwrap_err();
        assert!(matches!(
            error.details(),
            Some(Details::Limit {
                asked: u64::MAX,
                ..
            })
        ));
        let grid = Grid::elements(u64::MAX);
        assert!(grid.resolve([u32::MAX, 1, 1], [u32::MAX; 3]).is_err());
        let grid = Grid::elements(u64::from(u32::MAX) * u64::from(u32::MAX));
        let groups = grid.resolve([u32::MAX, 1, 1], [u32::MAX; 3]).unwrap();
        assert_eq!(groups, [u32::MAX, 1, 1]);
    }

    #[test]
    fn a_negative_count_is_a_typed_error_even_beside_a_zero() {
        let error = Grid::groups((0, -5)).resolve([1; 3], LIMITS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("-5 workgroups along y"));
        let error = Grid::elements(-1).resolve([1; 3], LIMITS).unwrap_err();
        assert!(error.to_string().contains("-1 elements along x"));
    }
}
