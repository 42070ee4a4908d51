//! Routes in memory: the egress ports of a frame, nearest first.

use crate::addr::PortNo;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use serde::{Deserialize, Serialize};

/// The hops of one route. [`PortNo::CONTROL`] ends a route at a control plane.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hops(pub Vec<PortNo>);

impl Hops {
    /// Returns the route that ends at this switch's own control plane.
    pub fn to_control() -> Hops {
        Hops([PortNo::CONTROL].into())
    }

    /// Returns this route with one more hop in front.
    pub fn after(&self, first: PortNo) -> Hops {
        let mut hops = Vec::with_capacity(self.0.len() + 1);
        hops.push(first);
        hops.extend_from_slice(&self.0);
        Hops(hops)
    }
}

impl Deref for Hops {
    type Target = [PortNo];
    fn deref(&self) -> &[PortNo] {
        &self.0
    }
}

impl<const N: usize> From<[u16; N]> for Hops {
    fn from(ports: [u16; N]) -> Hops {
        Hops(ports.into_iter().map(PortNo).collect())
    }
}

impl FromIterator<PortNo> for Hops {
    fn from_iter<I: IntoIterator<Item = PortNo>>(ports: I) -> Hops {
        Hops(ports.into_iter().collect())
    }
}

impl fmt::Display for Hops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, hop) in self.0.iter().enumerate() {
            write!(f, "{}{hop}", if index == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Hops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}
