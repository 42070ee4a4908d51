//! Routes as installed by switches: hops and layer.

use crate::addr::PortNo;
use crate::hops::Hops;
use crate::priority::{NotInRange, PRIORITIES};
use serde::{Deserialize, Serialize};

/// Layer of a route, 0 to 7. The routes of a lossless priority are divided into layers so that the
/// buffers of no layer form a cycle. Each layer is a priority of its own between switches and
/// invisible to hosts. An undivided priority uses layer 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct Layer(u8);

impl Layer {
    /// The first layer, and the only one where routes are not divided.
    pub const ZERO: Layer = Layer(0);

    /// Returns layer `value`, or `None` if it is above 7.
    pub const fn new(value: u8) -> Option<Layer> {
        if value < PRIORITIES as u8 { Some(Layer(value)) } else { None }
    }

    /// Returns the number, 0 to 7.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Returns the number as an index into an array of eight.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<Layer> for u8 {
    fn from(layer: Layer) -> u8 {
        layer.0
    }
}

impl TryFrom<u8> for Layer {
    type Error = NotInRange;
    fn try_from(value: u8) -> Result<Layer, NotInRange> {
        Layer::new(value).ok_or(NotInRange(value))
    }
}

/// A route for the frames of one host port to one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub struct Route {
    /// The egress ports, nearest first.
    pub hops: Hops,
    /// The layer of lossless frames.
    pub layer: Layer,
    /// True if frames in a VLAN leave tagged. Frames in no VLAN leave unchanged.
    pub tagged: bool,
}

/// Encoding of a [`Route`] in messages: the layer in the low bits of an octet, and in its highest
/// bit whether frames leave tagged.
#[derive(Serialize, Deserialize)]
struct Encoded {
    hops: Hops,
    #[serde(rename = "layer")]
    layer_and_tagged: u8,
}

/// Bit of the octet: frames leave tagged.
const TAGGED: u8 = 0x80;

impl From<Route> for Encoded {
    fn from(Route { hops, layer, tagged }: Route) -> Encoded {
        Encoded { hops, layer_and_tagged: layer.0 | if tagged { TAGGED } else { 0 } }
    }
}

impl TryFrom<Encoded> for Route {
    type Error = NotInRange;
    fn try_from(Encoded { hops, layer_and_tagged }: Encoded) -> Result<Route, NotInRange> {
        let layer = Layer::try_from(layer_and_tagged & !TAGGED)?;
        Ok(Route { hops, layer, tagged: layer_and_tagged & TAGGED != 0 })
    }
}

impl From<Hops> for Route {
    fn from(hops: Hops) -> Route {
        Route { hops, layer: Layer::ZERO, tagged: false }
    }
}

impl<const N: usize> From<[u16; N]> for Route {
    fn from(ports: [u16; N]) -> Route {
        Hops::from(ports).into()
    }
}

impl FromIterator<PortNo> for Route {
    fn from_iter<I: IntoIterator<Item = PortNo>>(ports: I) -> Route {
        Hops::from_iter(ports).into()
    }
}
