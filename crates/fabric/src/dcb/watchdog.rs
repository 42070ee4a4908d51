//! Bounds of pauses that congestion causes, which the watchdog must not take for a storm: the bound
//! of a single link, and the inputs that `axon prove` needs for each buffer.

use super::headroom::{QUANTUM_BITS, cable_ends, headroom, needed};
use super::{Buffers, CableEnd, Dcb};
use crate::error::Problem;
use crate::model::{Cable, End, Fabric};
use crate::units::span_text;
use axon_plane::schedule::Algorithm;
use axon_plane::shared_buffer::Share;
use axon_plane::targeted::Watermarks;
use axon_prove::{Buffer, Draining, ToHosts};
use axon_wire::priority::{Priority, TrafficClass};
use axon_wire::{Bytes, Rate, Span};
use std::collections::BTreeMap;

/// Ticks of 10 ps in a microsecond.
const TICKS_PER_MICRO: u64 = 100_000;

/// Refuses a watchdog for which a single XOFF is a storm. A PFC frame or a PAUSE pauses a queue for
/// its time, which ends by itself; in a storm the peer refreshes it repeatedly. This bound holds
/// for any traffic; how long congestion may pause a queue depends on the routes: see [`draining`].
pub(crate) fn check_detection(fabric: &Fabric) -> Result<(), Problem> {
    let Some((dcb, watchdog)) = fabric.dcb.as_deref().and_then(|dcb| Some((dcb, dcb.watchdog?)))
    else {
        return Ok(());
    };
    let links = (0..fabric.links.len()).map(Cable::Link);
    let cables = links.chain((0..fabric.hosts.len()).map(Cable::Host));
    let Some(slowest) = cables.map(|cable| fabric.wire(cable).rate).min() else { return Ok(()) };
    let stop = slowest.time_for(Bytes(u64::from(dcb.quanta.0) * QUANTUM_BITS / 8));
    let least = u128::from(stop.ticks()) * 100 / u128::from(watchdog.paused_percent.max(1));
    if u128::from(watchdog.detection.ticks()) > least {
        return Ok(());
    }
    let least = Span::from_ticks(u64::try_from(least).unwrap_or(u64::MAX));
    let what = format!(
        "{} is too short: a single frame of {} quanta pauses a queue for {} on a link of {slowest}",
        span_text(watchdog.detection),
        dcb.quanta.0,
        span_text(up(stop)),
    );
    let expected = format!("more than {}, or fewer dcb.quanta", span_text(up(least)));
    Err(Problem::new("dcb.watchdog.detection", what, expected))
}

/// Rounds up to whole microseconds.
fn up(span: Span) -> Span {
    Span::from_micros(span.ticks().div_ceil(TICKS_PER_MICRO))
}

/// Returns what each buffer at the end of a link between switches adds to the longest pause that
/// congestion causes ([`axon_prove::congestion_pauses`]): for the lossless class with the smallest
/// guarantee, and for the largest number of priorities that share any lossless class.
///
/// # Panics
/// If called for a buffer that no link fills.
pub fn draining(fabric: &Fabric, dcb: &Dcb) -> impl Fn(Buffer) -> Draining {
    let part = least_promised(dcb);
    let mut links: BTreeMap<End, ([Rate; 2], usize, Bytes)> = BTreeMap::new();
    for (index, link) in fabric.links.iter().enumerate() {
        let rates = fabric.rates(Cable::Link(index));
        let end = CableEnd { is_host: false, wire: &link.wire, rates };
        let headroom = needed(&headroom(fabric, dcb, end));
        links.insert(link.a, (rates, link.b.switch, headroom));
        links.insert(link.b, (rates, link.a.switch, headroom));
    }
    let switches: Vec<(u64, Option<Rate>)> =
        (0..fabric.switches.len()).map(|switch| ports(fabric, switch)).collect();
    let beside = |priority| dcb.beside(priority).iter().count() as u64;
    let sharing = dcb.lossless.iter().map(beside).max().unwrap_or(1);
    let layers = u64::from(dcb.layer_count());
    let (buffers, watermarks) = (dcb.buffers.clone(), dcb.watermarks);
    move |buffer| {
        let from = End { switch: buffer.from.index(), port: buffer.egress };
        let ([slowest, fastest], at, headroom) = links[&from];
        let (sharing_ports, to_hosts) = switches[at];
        let to_leave = |groups| to_leave(&buffers, headroom, groups, watermarks.is_some());
        let of_queue = |watermarks: Watermarks| {
            watermarks.high.0.saturating_add(sharing_ports.saturating_mul(headroom.0))
        };
        Draining {
            link: fastest,
            promised: part.of_rate(slowest),
            ingress_ports: sharing_ports,
            bytes: to_leave(sharing),
            to_hosts: to_hosts.map(|rate| ToHosts {
                promised: part.of_rate(rate),
                layers,
                bytes: to_leave(sharing * layers),
            }),
            queue: Bytes(watermarks.map_or(0, of_queue)),
        }
    }
}

/// Returns the maximum bytes that must leave a FIFO, shared by this many priority groups of one
/// ingress port, before XON is sent for one of them.
///
/// For that group: the headroom, of which no more is used than is needed, and `xon_offset` of a
/// fixed share; all of the share, where it follows the free memory, since it may shrink to nothing
/// meanwhile, and where its sender may be paused as long as any frame of it waits (`all`). For the
/// others, all that they can hold: reserved memory, share and headroom.
fn to_leave(buffers: &Buffers, headroom: Bytes, groups: u64, all: bool) -> Bytes {
    let others = groups.saturating_sub(1);
    let shared = match buffers.lossless_share.0 {
        Share::Static(share) => {
            let own = if all { share } else { share.min(buffers.xon_offset()) };
            let both = share.0.saturating_mul(others).saturating_add(own.0);
            both.min(buffers.lossless_pool.0.0)
        }
        Share::Dynamic { shift } => largest_shares(buffers.lossless_pool.0.0, shift, groups),
    };
    let reserved = buffers.reserved.0.0.saturating_mul(if all { groups } else { others });
    let beside = reserved.saturating_add(headroom.0.saturating_mul(groups));
    Bytes(shared.saturating_add(beside))
}

/// Returns how many ports of a switch may share another of its ports, and the lowest rate that a
/// port to one of its hosts ever has. The controller sends no lossless frames.
fn ports(fabric: &Fabric, switch: usize) -> (u64, Option<Rate>) {
    let cable_ends: Vec<CableEnd<'_>> = cable_ends(fabric, switch).into_iter().flatten().collect();
    let hosts = cable_ends.iter().filter(|end| end.is_host).map(|end| end.rates[0]);
    let all = cable_ends.len() - usize::from(fabric.controller.at.switch == switch);
    (all.saturating_sub(1) as u64, hosts.min())
}

/// Returns the maximum that this many groups use of a pool of which each may take a part of what is
/// free: with `alpha`, the first `alpha / (1 + alpha)` of it, the next as much of the rest, and so
/// on.
fn largest_shares(pool: u64, shift: i8, groups: u64) -> u64 {
    let power = 1_u128 << shift.unsigned_abs().min(32);
    let (part, rest) = if shift < 0 { (1, power) } else { (power, 1) };
    let more = |free: u64| u64::try_from(u128::from(free) * part / (part + rest)).unwrap_or(free);
    (0..groups).fold(0, |taken, _| taken + more(pool - taken))
}

/// Fraction of a link's rate.
#[derive(Clone, Copy, Debug)]
struct Part {
    weight: u64,
    of: u64,
}

impl Part {
    /// Returns this fraction of a rate, in bits per second.
    fn of_rate(self, rate: Rate) -> u64 {
        let bits = u128::from(rate.bits_per_second()) * u128::from(self.weight);
        u64::try_from(bits / u128::from(self.of.max(1))).unwrap_or(u64::MAX)
    }
}

/// Returns the smallest share of a link that a lossless class is guaranteed when all classes are
/// busy, with strict classes before it left out.
fn least_promised(dcb: &Dcb) -> Part {
    let classes = &dcb.schedule.classes;
    let weight = |algorithm: &Algorithm| match *algorithm {
        Algorithm::Strict => 0,
        Algorithm::Ets { percent } => u64::from(percent),
        Algorithm::Drr { quantum_bytes } => u64::from(quantum_bytes),
        Algorithm::Wfq { weight } => u64::from(weight),
    };
    let sum: u64 = classes.iter().map(weight).sum();
    let part = |priority: Priority| {
        let class: TrafficClass = dcb.prio_tc[priority.index()];
        match classes[class.index()] {
            Algorithm::Strict => Part { weight: 1, of: 1 },
            ref shared => Part { weight: weight(shared), of: sum },
        }
    };
    let least = |one: Part, other: Part| {
        let [a, b] = [(one, other), (other, one)]
            .map(|(part, beside)| u128::from(part.weight) * u128::from(beside.of));
        if b < a { other } else { one }
    };
    dcb.lossless.iter().map(part).reduce(least).unwrap_or(Part { weight: 1, of: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_controller::topology::SwitchIndex;

    /// Two switches with two hosts each; hosts are at the first ports.
    fn fabric(more: &str) -> Fabric {
        let text = format!(
            "name: a\ntopology: {{line: {{switches: 2, hosts_per_switch: 2}}}}\n\
             links: {{rate: 10Gbps, latency: 500ns}}\n\
             overrides: [{{between: [h3, s2], rate: 1Gbps}}]\ndcb:\n  classes:\n  \
             - {{priorities: [0, 1, 2, 5, 6], ets: 40}}\n  \
             - {{priorities: [3, 4], ets: 60, lossless: true}}\n  - {{priorities: [7]}}\n{more}"
        );
        crate::parse("a.yaml".as_ref(), &text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn first(fabric: &Fabric) -> Draining {
        let from = fabric.links[0].a;
        let from_switch = SwitchIndex(from.switch as u32);
        let buffer = Buffer { from: from_switch, egress: from.port, priority: Priority::ZERO };
        draining(fabric, fabric.dcb.as_deref().unwrap())(buffer)
    }

    /// Returns the headroom needed at the ends of the first link.
    fn headroom_of(fabric: &Fabric) -> u64 {
        let link = &fabric.links[0];
        let end = CableEnd { is_host: false, wire: &link.wire, rates: [link.wire.rate; 2] };
        needed(&headroom(fabric, fabric.dcb.as_deref().unwrap(), end)).0
    }

    #[test]
    fn a_buffer_gets_what_its_class_is_promised_and_holds_what_the_shares_in_it_allow() {
        let fabric = fabric("  buffers: {lossless_pool: 9MB, lossless_share: 1/2}\n");
        let found = first(&fabric);
        let to_hosts = found.to_hosts.unwrap();
        // 60 % for two priorities; s2 has two hosts and the link.
        assert_eq!((found.promised, to_hosts.promised), (6_000_000_000, 600_000_000));
        assert_eq!((found.link, found.ingress_ports, to_hosts.layers), (Rate::gbps(10), 2, 1));
        // A third of the pool, half of the two thirds that are free then; the other priority a
        // third of these.
        let bytes = Bytes(5_000_000 + 2 * headroom_of(&fabric));
        assert_eq!((found.bytes, to_hosts.bytes, found.queue), (bytes, bytes, Bytes(0)));
    }

    #[test]
    fn of_a_fixed_share_what_is_to_be_free_has_to_leave_and_all_that_another_priority_holds() {
        let bytes = |more: &str| {
            let fabric = fabric(&format!("  buffers: {{lossless_share: 50kB, {more}}}\n"));
            first(&fabric).bytes.0 - 2 * headroom_of(&fabric)
        };
        assert_eq!(bytes("xon_offset: 4kB"), 54_000);
        assert_eq!(bytes("xon_offset: 60kB"), 100_000);
        assert_eq!(bytes("xon_offset: 4kB, reserved: 3kB"), 57_000);
        assert_eq!(bytes("xon_offset: 4kB, lossless_pool: 52kB"), 52_000, "there is no more");
    }

    #[test]
    fn where_queues_have_watermarks_all_has_to_leave_and_a_whole_queue() {
        let fabric = fabric(
            "  buffers: {lossless_share: 50kB, xon_offset: 4kB, reserved: 3kB}\n  \
             watermarks: {low: 20kB, high: 90kB}\n",
        );
        let (found, headroom) = (first(&fabric), headroom_of(&fabric));
        assert_eq!(found.bytes, Bytes(106_000 + 2 * headroom));
        assert_eq!(found.queue, Bytes(90_000 + 2 * headroom));
    }

    #[test]
    fn layers_share_a_queue_towards_hosts_only() {
        let fabric = |layers: &str| {
            let text = format!(
                "name: a\ntopology: {{line: {{switches: 2, hosts_per_switch: 2}}}}\n\
                 links: {{rate: 10Gbps}}\ndcb:\n  {layers}classes:\n  \
                 - {{priorities: [0, 1, 2, 5, 6], ets: 40}}\n  \
                 - {{priorities: [3], ets: 30, lossless: true}}\n  \
                 - {{priorities: [4], ets: 30, lossless: true}}\n  - {{priorities: [7]}}\n  \
                 buffers: {{lossless_share: 50kB, xon_offset: 4kB}}\n"
            );
            crate::parse("a.yaml".as_ref(), &text).unwrap_or_else(|error| panic!("{error}"))
        };
        let with_layers = fabric("layers: [[3, 4]]\n  ");
        let headroom = headroom_of(&with_layers);
        let [plain, layered] = [fabric(""), with_layers].map(|fabric| first(&fabric));
        let promised = 3_000_000_000;
        let alone = ToHosts { promised, layers: 1, bytes: Bytes(4_000 + headroom) };
        let both = ToHosts { promised, layers: 2, bytes: Bytes(54_000 + 2 * headroom) };
        assert_eq!((plain.bytes, plain.to_hosts), (alone.bytes, Some(alone)));
        assert_eq!((layered.bytes, layered.to_hosts), (alone.bytes, Some(both)));
    }

    #[test]
    fn the_part_of_a_pool_that_one_group_gets_goes_with_alpha() {
        let parts = [-7, -1, 0, 1, 3].map(|shift| largest_shares(129 * 900, shift, 1));
        assert_eq!(parts, [900, 38_700, 58_050, 77_400, 103_200]);
        assert_eq!([0, 1, 2, 3].map(|groups| largest_shares(800, 0, groups)), [0, 400, 600, 700]);
    }
}
