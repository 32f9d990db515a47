//! Element types, and which of them a device takes.

use core::fmt;

use super::feature::{Feature, FeatureSet};

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// A truth value, one byte that is 0 or 1.
    Bool,
    /// An unsigned 8-bit integer.
    U8,
    /// A signed 8-bit integer.
    I8,
    /// An unsigned 16-bit integer.
    U16,
    /// A signed 16-bit integer.
    I16,
    /// An unsigned 32-bit integer.
    U32,
    /// A signed 32-bit integer.
    I32,
    /// An unsigned 64-bit integer.
    U64,
    /// A signed 64-bit integer.
    I64,
    /// A 16-bit IEEE 754 float.
    F16,
    /// A 16-bit float with the exponent of a 32-bit one.
    BF16,
    /// A 32-bit IEEE 754 float.
    F32,
    /// A 64-bit IEEE 754 float.
    F64,
}

/// One row a type: its name, its size in bytes, the feature that reading and writing it in a storage
/// buffer and converting it takes (none where every device can).
const TABLE: &[(DType, &str, usize, Option<Feature>)] = &[
    (
        DType::Bool,
        "bool",
        1,
        Some(Feature::StorageBuffer8BitAccess),
    ),
    (DType::U8, "u8", 1, Some(Feature::StorageBuffer8BitAccess)),
    (DType::I8, "i8", 1, Some(Feature::StorageBuffer8BitAccess)),
    (
        DType::U16,
        "u16",
        2,
        Some(Feature::StorageBuffer16BitAccess),
    ),
    (
        DType::I16,
        "i16",
        2,
        Some(Feature::StorageBuffer16BitAccess),
    ),
    (DType::U32, "u32", 4, None),
    (DType::I32, "i32", 4, None),
    (DType::U64, "u64", 8, Some(Feature::ShaderInt64)),
    (DType::I64, "i64", 8, Some(Feature::ShaderInt64)),
    (
        DType::F16,
        "f16",
        2,
        Some(Feature::StorageBuffer16BitAccess),
    ),
    (
        DType::BF16,
        "bf16",
        2,
        Some(Feature::StorageBuffer16BitAccess),
    ),
    (DType::F32, "f32", 4, None),
    (DType::F64, "f64", 8, Some(Feature::ShaderFloat64)),
];

impl DType {
    /// Every type, in the order of declaration.
    pub const ALL: &'static [Self] = &{
        let mut all = [Self::Bool; TABLE.len()];
        let mut row = 0;
        while row < TABLE.len() {
            all[row] = TABLE[row].0;
            row += 1;
        }
        all
    };

    /// The short name, as `f32`.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The size of one element in bytes.
    pub const fn size(self) -> usize {
        TABLE[self as usize].2
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of element types.
///
/// # Example
///
/// ```
/// use vkaccel::{DType, DTypeSet};
///
/// let set: DTypeSet = [DType::F32, DType::U32].into_iter().collect();
/// assert!(set.contains(DType::F32) && !set.contains(DType::F64));
/// assert_eq!(set.iter().collect::<Vec<_>>(), [DType::U32, DType::F32]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DTypeSet(u32);

impl DTypeSet {
    /// The set of none.
    pub const EMPTY: Self = Self(0);

    /// Whether the set has the type.
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 & (1 << dtype as u32) != 0
    }

    /// How many types the set has.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set has none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The types, in the order of declaration.
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL
            .iter()
            .copied()
            .filter(move |&dtype| self.contains(dtype))
    }

    /// The types that can be allocated on a device with these features and converted among each
    /// other there.
    ///
    /// Memory is bytes, so that every type can be allocated; what decides is whether a kernel can
    /// read and write single elements of it in a storage buffer and convert them. 8- and 16-bit
    /// elements take the storage feature alone: a conversion to 32 bits and back is allowed without
    /// arithmetic on the narrow type, and `bf16` is the upper half of an `f32`. 64-bit elements take
    /// the type itself. Any two types of the set then convert, since each one's feature is there.
    pub(crate) fn of_features(features: FeatureSet) -> Self {
        TABLE
            .iter()
            .filter(|row| row.3.is_none_or(|feature| features.contains(feature)))
            .map(|row| row.0)
            .collect()
    }
}

impl FromIterator<DType> for DTypeSet {
    fn from_iter<I: IntoIterator<Item = DType>>(dtypes: I) -> Self {
        Self(dtypes.into_iter().fold(0, |set, d| set | 1 << d as u32))
    }
}

impl fmt::Debug for DTypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_one_row_a_type_in_the_order_of_declaration() {
        for (row, &(dtype, name, size, _)) in TABLE.iter().enumerate() {
            assert_eq!(dtype as usize, row);
            let bits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            assert_eq!(size * 8, bits.parse().unwrap_or(8), "{name}");
            assert_eq!(DType::ALL[row].to_string(), name);
        }
        assert_eq!(DType::F64 as usize + 1, TABLE.len());
    }

    #[test]
    fn thirty_two_bit_types_are_everywhere_and_others_follow_features() {
        let names = |features: &[Feature]| -> Vec<&str> {
            DTypeSet::of_features(features.iter().copied().collect())
                .iter()
                .map(DType::name)
                .collect()
        };
        assert_eq!(names(&[]), ["u32", "i32", "f32"]);
        assert_eq!(
            names(&[Feature::StorageBuffer8BitAccess, Feature::ShaderInt64]),
            ["bool", "u8", "i8", "u32", "i32", "u64", "i64", "f32"]
        );
        assert_eq!(
            names(&[Feature::StorageBuffer16BitAccess, Feature::ShaderFloat64]),
            ["u16", "i16", "u32", "i32", "f16", "bf16", "f32", "f64"]
        );
        // Arithmetic on a narrow type does not make it storable.
        assert_eq!(
            names(&[Feature::ShaderFloat16, Feature::ShaderInt8]).len(),
            3
        );
        let all: DTypeSet = DType::ALL.iter().copied().collect();
        assert_eq!(
            DTypeSet::of_features(Feature::ALL.iter().copied().collect()),
            all
        );
        assert_eq!(all.len(), 13);
    }
}
