//! A route as switches install it: its hops and its layer.

use crate::addr::{NodeId, PortNo};
use crate::hops::Hops;
use crate::priority::{NotInRange, PRIORITIES};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One of the parts that the routes of a lossless priority are divided into, so that in none of
/// them buffers can form a cycle: 0 to 7. Each is a priority of its own between
/// switches; hosts know nothing of layers. Where there is only one, it is 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct Layer(u8);

impl Layer {
    /// The first, and the only one where routes are not divided.
    pub const ZERO: Layer = Layer(0);

    /// Layer `value`; `None` above 7.
    pub const fn new(value: u8) -> Option<Layer> {
        if value < PRIORITIES as u8 { Some(Layer(value)) } else { None }
    }

    /// The number: 0 to 7.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// The number as an index into an array of eight.
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
    /// The ports that they leave by, nearest first.
    pub hops: Hops,
    /// The layer that they travel on, if they are lossless.
    pub layer: Layer,
    /// Whether frames that are in a VLAN leave with its tag. Those in none leave as they came.
    pub tagged: bool,
}

/// What a message has of a [`Route`]: the layer in the low bits of an octet, and whether frames
/// leave tagged in its highest.
#[derive(Serialize, Deserialize)]
struct Encoded {
    hops: Hops,
    #[serde(rename = "layer")]
    layer_and_tagged: u8,
}

/// In that octet: frames leave tagged.
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

/// One end of a link between switches, which names the direction that starts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The switch.
    pub node: NodeId,
    /// Its port.
    pub port: PortNo,
}

/// A route, and the switches that it leads through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutePath {
    /// The route.
    pub route: Route,
    /// The switch that each hop leaves. That of the last hop, which leads to the host, is named
    /// only where the host can be reached by another port too: then its port is a link of the
    /// route.
    pub switches: Vec<NodeId>,
}

impl RoutePath {
    /// The links that the route takes, nearest first, each by the end that it starts from.
    pub fn links(&self) -> impl Iterator<Item = LinkEnd> {
        let ends = self.switches.iter().zip(self.route.hops.iter());
        ends.map(|(&node, &port)| LinkEnd { node, port })
    }
}
