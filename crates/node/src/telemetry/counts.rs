//! Counts by reason of drops, punts and refused messages.

use crate::contract::{Drop, Punt, Refusal};
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Closed list of reasons, each with its own name.
pub trait Reason: Copy + Ord + 'static {
    /// All reasons, in order.
    const ALL: &'static [Self];

    /// Returns the name in telemetry.
    fn name(self) -> &'static str;
}

macro_rules! reasons {
    ($($reason:ty),*) => {
        $(impl Reason for $reason {
            const ALL: &'static [$reason] = <$reason>::ALL;

            fn name(self) -> &'static str {
                self.name()
            }
        })*
    };
}
reasons!(Drop, Punt, Refusal);

/// Number of occurrences of each reason. Zero and absent are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<R>(BTreeMap<R, u64>);

impl<R> Default for Counts<R> {
    fn default() -> Counts<R> {
        Counts(BTreeMap::new())
    }
}

impl<R: Reason> Counts<R> {
    /// Returns the counts that `count` gives for each reason.
    pub fn of(count: impl Fn(R) -> u64) -> Counts<R> {
        R::ALL.iter().map(|&reason| (reason, count(reason))).collect()
    }

    /// Returns the number of occurrences of `reason`.
    pub fn get(&self, reason: R) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// Iterates over the reasons that have occurred, in order, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (R, u64)> {
        self.0.iter().map(|(&reason, &count)| (reason, count))
    }
}

impl<R: Reason> FromIterator<(R, u64)> for Counts<R> {
    fn from_iter<I: IntoIterator<Item = (R, u64)>>(counts: I) -> Counts<R> {
        Counts(counts.into_iter().filter(|&(_, count)| count > 0).collect())
    }
}

impl<R: Reason> Serialize for Counts<R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(reason, count)| (reason.name(), count)))
    }
}

struct ReadCounts<R>(PhantomData<R>);

impl<'de, R: Reason> Visitor<'de> for ReadCounts<R> {
    type Value = Counts<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object from reasons to counts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counts<R>, A::Error> {
        let mut counts = Counts::default();
        while let Some((name, count)) = map.next_entry::<String, u64>()? {
            let known = R::ALL.iter().find(|reason| reason.name() == name);
            let unknown = || de::Error::custom(format_args!("`{name}` is no reason known here"));
            counts.0.insert(*known.ok_or_else(unknown)?, count);
        }
        counts.0.retain(|_, count| *count > 0);
        Ok(counts)
    }
}

impl<'de, R: Reason> Deserialize<'de> for Counts<R> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Counts<R>, D::Error> {
        from.deserialize_map(ReadCounts(PhantomData))
    }
}

macro_rules! array {
    ($(#[$doc:meta])* $name:ident, $reason:ty, $list:expr) => {
        $(#[$doc])*
        pub(crate) mod $name {
            use super::*;

            const LEN: usize = $list.len();

            pub fn serialize<S: Serializer>(counts: &[u64; LEN], to: S) -> Result<S::Ok, S::Error> {
                let pairs = $list.iter().zip(counts).map(|(&reason, &count)| (reason, count));
                pairs.collect::<Counts<$reason>>().serialize(to)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u64; LEN], D::Error> {
                let counts = Counts::<$reason>::deserialize(from)?;
                let mut array = [0; LEN];
                array.iter_mut().zip($list).for_each(|(at, reason)| *at = counts.get(*reason));
                Ok(array)
            }
        }
    };
}
array!(
    /// An array of drops by reason, written as [`Counts`].
    drops,
    Drop,
    Drop::ALL
);
array!(
    /// An array of ends in normal operation by reason, written as [`Counts`].
    ended,
    Drop,
    &Drop::ORDINARY
);
array!(
    /// An array of punts by reason, written as [`Counts`].
    punts,
    Punt,
    Punt::ALL
);
