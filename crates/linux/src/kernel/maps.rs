//! Typed access to the tables of the kernel's data plane. `ebpf/step.h` declares the tables for the
//! programs.

use super::error::KernelError;
use axon_node::{PortKind, RouteError};
use axon_plane::routes;
use axon_wire::header::{self, HeaderView};
use axon_wire::{HopWidth, Hops, MacAddr, PortNo, Route};
use aya::maps::{Array, DevMap, HashMap, Map, MapData, MapError, PerCpuArray};
use std::collections::BTreeMap;

/// Longest header that the programs attach, in bytes: 54 hops of 8 bits, 27 hops of 16 bits, or 109
/// hops of 4 bits.
pub const HEADER_BYTES_MAX: usize = 60;

const BODY_WORDS: usize = 8;
const VALUE_WORDS: usize = BODY_WORDS + 2;
/// Index of `used` in a value.
const USED: usize = VALUE_WORDS - 1;
/// Offset of the header in a body, after the egress port and the header length.
const HEADER_AT: usize = 4;

/// Factors for a route's checksum, as in `ebpf/step.h`. The last one is for the flow.
const FACTORS: [u64; BODY_WORDS + 1] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
    0x1d8e_4e27_c47d_124f,
];

type Flow = [u8; 8];
type Value = [u64; VALUE_WORDS];

/// Traffic of a port in the kernel. A packet that is segmented later counts as that many frames,
/// but its headers count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames received by this port and forwarded.
    pub in_frames: u64,
    /// Bytes received by this port and forwarded.
    pub in_bytes: u64,
    /// Frames sent by this port.
    pub out_frames: u64,
    /// Bytes sent by this port.
    pub out_bytes: u64,
    /// Packets received by this port and passed to the node.
    pub node_packets: u64,
    /// Packets received by this port and lost, because the kernel had no memory, no node was
    /// running, or the rate limit to the node was exceeded.
    pub lost_packets: u64,
}

/// Queue for packets that the tc program passes to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeQueue {
    /// Packets received by an Axon port, other than frames of hosts.
    Fabric = 0,
    /// Link-local frames received by any other port.
    Links = 1,
    /// All other packets: misses, broadcasts, and frames from ports with an unknown peer.
    Hosts = 2,
}

/// Device maps in which the XDP program looks up the device and the kind of an egress port at once.
/// A port is in at most one of them.
struct Devices {
    links: DevMap<MapData>,
    hosts: DevMap<MapData>,
}

/// Version counter of the routes, which is odd while they are being changed. A program that caches
/// routes looks them up again after a change. While the version is odd, as a predecessor may have
/// left it, the program caches none.
struct Version {
    map: Array<MapData, u64>,
    is: u64,
}

impl Version {
    /// Opens the counter and advances it to the next even value.
    fn take(take: &mut impl FnMut(&str) -> Option<Map>) -> Result<Option<Version>, KernelError> {
        let Some(map) = take("version") else { return Ok(None) };
        let map = Array::try_from(map)?;
        let mut version = Version { is: map.get(&0, 0)?, map };
        if version.is & 1 == 1 {
            version.advance()?;
        }
        Ok(Some(version))
    }

    fn advance(&mut self) -> Result<(), KernelError> {
        self.map.set(0, self.is.wrapping_add(1), 0)?;
        self.is = self.is.wrapping_add(1);
        Ok(())
    }
}

impl Devices {
    fn take(take: &mut impl FnMut(&str) -> Option<Map>) -> Result<Option<Devices>, KernelError> {
        let (Some(links), Some(hosts)) = (take("links"), take("hosts")) else { return Ok(None) };
        Ok(Some(Devices { links: DevMap::try_from(links)?, hosts: DevMap::try_from(hosts)? }))
    }

    fn of(&mut self, kind: PortKind) -> Option<&mut DevMap<MapData>> {
        match kind {
            PortKind::Axon => Some(&mut self.links),
            PortKind::Host => Some(&mut self.hosts),
            PortKind::Unknown => None,
        }
    }

    /// Removes a port from the maps for other kinds. If its kind changes, its frames go to the node
    /// until [`Devices::set`].
    fn clear_other(
        &mut self,
        number: u32,
        ifindex: u32,
        kind: PortKind,
    ) -> Result<(), KernelError> {
        for one in [PortKind::Axon, PortKind::Host] {
            if ifindex != 0 && one == kind {
                continue;
            }
            if let Some(map) = self.of(one) {
                map.set(number, 0, None, 0)?;
            }
        }
        Ok(())
    }

    /// Enters a port in the map for its kind. A missing device counts as no device, so the frames
    /// go to the node.
    fn set(&mut self, number: u32, ifindex: u32, kind: PortKind) -> Result<(), KernelError> {
        let Some(map) = self.of(kind).filter(|_| ifindex != 0) else { return Ok(()) };
        match map.set(number, ifindex, None, 0).map_err(KernelError::from) {
            Err(error) if matches!(error.errno(), Some(libc::EINVAL | libc::ENODEV)) => {
                Ok(map.set(number, 0, None, 0)?)
            }
            done => done,
        }
    }
}

/// Tables of one switch.
pub(super) struct Tables {
    width: HopWidth,
    ports: Array<MapData, u64>,
    routes: HashMap<MapData, Flow, Value>,
    traffic: PerCpuArray<MapData, [u64; 6]>,
    /// Device for packets to the node, with tc only.
    node: Option<Array<MapData, u32>>,
    /// Device maps, with XDP only.
    devices: Option<Devices>,
    /// Version counter of the routes, with XDP only.
    version: Option<Version>,
    /// Number of routes of each port. The kernel does not count them.
    lengths: BTreeMap<u16, usize>,
    routes_per_port_max: usize,
}

impl Tables {
    /// Takes the tables by name, and counts the routes that a predecessor has left in them.
    pub(super) fn new(
        mut take: impl FnMut(&str) -> Option<Map>,
        width: HopWidth,
        routes_per_port_max: usize,
    ) -> Result<Tables, KernelError> {
        let mut wanted =
            |name| take(name).ok_or(KernelError::Missing { feature: "table of that name" });
        let ports = Array::try_from(wanted("ports")?)?;
        let routes = HashMap::try_from(wanted("routes")?)?;
        let traffic = PerCpuArray::try_from(wanted("traffic")?)?;
        let node = take("node").map(Array::try_from).transpose()?;
        let (devices, version) = (Devices::take(&mut take)?, Version::take(&mut take)?);
        let lengths = BTreeMap::new();
        let mut all = Tables {
            width,
            ports,
            routes,
            traffic,
            node,
            devices,
            version,
            lengths,
            routes_per_port_max,
        };
        all.restore_devices()?;
        let flows: Result<Vec<Flow>, _> = all.routes.keys().collect();
        for flow in flows? {
            *all.lengths.entry(port_of(flow).0).or_default() += 1;
        }
        Ok(all)
    }

    /// Returns the number of ports.
    fn ports(&self) -> u32 {
        self.ports.len()
    }

    fn check(&self, port: PortNo) -> Result<u32, KernelError> {
        let number = u32::from(port.0);
        if number < self.ports() { Ok(number) } else { Err(RouteError::NoSuchPort.into()) }
    }

    /// Changes a port in a single write.
    pub(super) fn set_port(
        &mut self,
        port: PortNo,
        ifindex: u32,
        kind: PortKind,
    ) -> Result<(), KernelError> {
        let number = self.check(port)?;
        let word = match kind {
            PortKind::Unknown => 0u64,
            PortKind::Host => 1,
            PortKind::Axon => 2,
        };
        if let Some(devices) = &mut self.devices {
            devices.clear_other(number, ifindex, kind)?;
        }
        self.ports.set(number, word << 32 | u64::from(ifindex), 0)?;
        match &mut self.devices {
            Some(devices) => devices.set(number, ifindex, kind),
            None => Ok(()),
        }
    }

    /// Sets the device maps from the ports, in case a predecessor ended between the two writes.
    fn restore_devices(&mut self) -> Result<(), KernelError> {
        if self.devices.is_some() {
            for number in 0..self.ports() as u16 {
                let (ifindex, kind) = self.port(PortNo(number))?;
                self.set_port(PortNo(number), ifindex, kind)?;
            }
        }
        Ok(())
    }

    /// Returns the ifindex and the kind of a port.
    pub(super) fn port(&self, port: PortNo) -> Result<(u32, PortKind), KernelError> {
        let word = self.ports.get(&self.check(port)?, 0)?;
        let kind = match word >> 32 {
            1 => PortKind::Host,
            2 => PortKind::Axon,
            _ => PortKind::Unknown,
        };
        Ok((word as u32, kind))
    }

    pub(super) fn set_route(
        &mut self,
        port: PortNo,
        destination: MacAddr,
        route: &Route,
    ) -> Result<(), KernelError> {
        self.check(port)?;
        let flow = flow_of(port, destination);
        let value = value_of(flow, port, route, self.width)?;
        let length = self.lengths.get(&port.0).copied().unwrap_or(0);
        let is_new = match self.routes.get(&flow, 0) {
            Ok(_) => false,
            Err(MapError::KeyNotFound) => true,
            Err(error) => return Err(error.into()),
        };
        if is_new && length >= self.routes_per_port_max {
            return Err(RouteError::Full.into());
        }
        self.change(|routes| routes.insert(flow, value, 0)).map_err(|error| {
            let full = matches!(error.errno(), Some(libc::E2BIG | libc::ENOMEM));
            if full { RouteError::Full.into() } else { error }
        })?;
        self.lengths.insert(port.0, length + usize::from(is_new));
        Ok(())
    }

    pub(super) fn remove_route(
        &mut self,
        port: PortNo,
        destination: MacAddr,
    ) -> Result<bool, KernelError> {
        self.check(port)?;
        match self.change(|routes| routes.remove(&flow_of(port, destination))) {
            Ok(()) => {
                self.lengths.entry(port.0).and_modify(|length| *length -= 1);
                Ok(true)
            }
            Err(error) if error.errno() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn take_used(
        &mut self,
        port: PortNo,
        destination: MacAddr,
    ) -> Result<bool, KernelError> {
        let flow = flow_of(port, destination);
        let mut value = match self.routes.get(&flow, 0) {
            Ok(value) => value,
            Err(MapError::KeyNotFound) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if value[USED] == 0 {
            return Ok(false);
        }
        value[USED] = 0;
        self.change(|routes| routes.insert(flow, value, 0))?;
        Ok(true)
    }

    /// Changes the routes so that no program continues to use an earlier one. If the second update
    /// of the version fails, the programs look up every route until the next change.
    fn change(
        &mut self,
        what: impl FnOnce(&mut HashMap<MapData, Flow, Value>) -> Result<(), MapError>,
    ) -> Result<(), KernelError> {
        if let Some(version) = self.version.as_mut().filter(|version| version.is & 1 == 0) {
            version.advance()?;
        }
        let done = what(&mut self.routes).map_err(KernelError::from);
        if let Some(version) = &mut self.version {
            let _ = version.advance();
        }
        done
    }

    /// Returns all routes, in no particular order.
    pub(super) fn routes(
        &self,
    ) -> impl Iterator<Item = Result<(PortNo, MacAddr, Route), KernelError>> + '_ {
        self.routes.iter().map(|element| {
            let (flow, value) = element?;
            let bad = || {
                KernelError::system("a route of the tables", std::io::ErrorKind::InvalidData.into())
            };
            let route = route_of(flow, &value, self.width).ok_or_else(bad)?;
            Ok((port_of(flow), destination_of(flow), route))
        })
    }

    pub(super) fn traffic(&self, port: PortNo) -> Result<Traffic, KernelError> {
        let of_cpus = self.traffic.get(&self.check(port)?, 0)?;
        let sum = |field: usize| of_cpus.iter().map(|of| of[field]).sum();
        Ok(Traffic {
            in_frames: sum(0),
            in_bytes: sum(1),
            out_frames: sum(2),
            out_bytes: sum(3),
            node_packets: sum(4),
            lost_packets: sum(5),
        })
    }

    /// Returns the ifindexes of the devices to the node, by [`NodeQueue`], 0 for none.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (usize, u32)> {
        let node = self.node.iter().flat_map(Array::iter).enumerate();
        node.filter_map(|(queue, ifindex)| Some((queue, ifindex.ok()?)))
    }

    pub(super) fn set_node(&mut self, queue: NodeQueue, ifindex: u32) -> Result<(), KernelError> {
        let Some(node) = &mut self.node else { return Ok(()) };
        Ok(node.set(queue as u32, ifindex, 0)?)
    }
}

fn flow_of(port: PortNo, destination: MacAddr) -> Flow {
    let mut flow = [0; 8];
    flow[..2].copy_from_slice(&port.0.to_ne_bytes());
    flow[2..].copy_from_slice(&destination.0);
    flow
}

fn port_of([a, b, ..]: Flow) -> PortNo {
    PortNo(u16::from_ne_bytes([a, b]))
}

fn destination_of([_, _, mac @ ..]: Flow) -> MacAddr {
    MacAddr(mac)
}

/// Returns the checksum of a value for this flow, as the programs compute it.
fn check_of(flow: Flow, body: &[u64]) -> u64 {
    let sum = u64::from_ne_bytes(flow).wrapping_mul(FACTORS[BODY_WORDS]);
    let products = body.iter().zip(FACTORS).map(|(word, factor)| word.wrapping_mul(factor));
    products.fold(sum, u64::wrapping_add)
}

/// Builds the value that the programs attach: the header after its first hop.
fn value_of(
    flow: Flow,
    port: PortNo,
    route: &Route,
    width: HopWidth,
) -> Result<Value, KernelError> {
    let egress = *route.hops.first().ok_or(RouteError::Unrepresentable)?;
    let mut header = routes::header_of(route, width)?;
    if header.len() > HEADER_BYTES_MAX {
        let (bytes, bytes_max) = (header.len(), HEADER_BYTES_MAX);
        return Err(KernelError::RouteTooLong { bytes, bytes_max });
    }
    header::advance(&mut header, width, port);
    let mut body = [0; 8 * BODY_WORDS];
    body[..2].copy_from_slice(&egress.0.to_ne_bytes());
    body[2..HEADER_AT].copy_from_slice(&(header.len() as u16).to_ne_bytes());
    body[HEADER_AT..][..header.len()].copy_from_slice(&header);
    let mut value = [0; VALUE_WORDS];
    for (word, bytes) in value[1..].iter_mut().zip(body.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    value[0] = check_of(flow, &value[1..=BODY_WORDS]);
    Ok(value)
}

/// Reconstructs the route from a value. Returns `None` if no node wrote the value.
fn route_of(flow: Flow, value: &Value, width: HopWidth) -> Option<Route> {
    if value[0] != check_of(flow, &value[1..=BODY_WORDS]) {
        return None;
    }
    let body: Vec<u8> = value[1..=BODY_WORDS].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let egress = PortNo(u16::from_ne_bytes([body[0], body[1]]));
    let length = usize::from(u16::from_ne_bytes([body[2], body[3]]));
    let header = HeaderView::parse(body.get(HEADER_AT..HEADER_AT + length)?, width).ok()?;
    let hops: Hops = std::iter::once(egress).chain(header.forward().iter().copied()).collect();
    Some(Route { hops, layer: routes::layer_of(&header.fields()), tagged: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Layer;

    #[test]
    fn a_route_comes_back_from_its_value() {
        for width in [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen] {
            for count in 1..=27u16 {
                let (port, mac) = (PortNo(3), MacAddr([2, 0, 0, 0, 0, 9]));
                let flow = flow_of(port, mac);
                let mut route: Route = (0..count).map(|hop| PortNo(hop % 15)).collect();
                if width != HopWidth::Four {
                    route.layer = Layer::new(5).unwrap();
                }
                let value = value_of(flow, port, &route, width).unwrap();
                assert_eq!(route_of(flow, &value, width), Some(route), "{width:?}");
                let other = flow_of(port, MacAddr([2, 0, 0, 0, 0, 8]));
                assert_eq!(route_of(other, &value, width), None, "another flow's");
            }
        }
    }

    #[test]
    fn any_two_values_mixed_word_by_word_are_recognised() {
        let width = HopWidth::Eight;
        let flow = flow_of(PortNo(0), MacAddr([2, 0, 0, 0, 0, 9]));
        let value = |hop: u16| {
            let route: Route = (0..50).map(|index| PortNo(index + hop)).collect();
            value_of(flow, PortNo(0), &route, width).unwrap()
        };
        let (one, two) = (value(0), value(1));
        for mask in 1..(1u32 << (1 + BODY_WORDS)) - 1 {
            let pick = |word: usize| if mask >> word & 1 == 0 { one[word] } else { two[word] };
            let mixed: Value = std::array::from_fn(|word| pick(word.min(BODY_WORDS)));
            assert_eq!(route_of(flow, &mixed, width), None, "{mask:b}");
        }
    }

    #[test]
    fn a_route_that_no_program_can_attach_is_refused() {
        let (port, flow) = (PortNo(0), [0; 8]);
        let long: Route = (0..55).map(PortNo).collect();
        let refused = value_of(flow, port, &long, HopWidth::Eight);
        assert!(matches!(refused, Err(KernelError::RouteTooLong { bytes: 61, .. })));
        let refused = value_of(flow, port, &Route::default(), HopWidth::Eight);
        assert!(matches!(refused, Err(KernelError::Route(RouteError::Unrepresentable))));
        let refused = value_of(flow, port, &Route::from([15]), HopWidth::Four);
        assert!(matches!(refused, Err(KernelError::Route(RouteError::Unrepresentable))));
    }
}
