//! Probe plans, and evaluation of probe records.
//!
//! Clocks of different switches cannot be compared, so only differences between stamps of one
//! switch are used. The time inside a switch is egress minus ingress. The time of a link is
//! measured on a path out and back: from the stamp with which the probe left the near switch to
//! that with which it came back there, minus the time beyond the far switch's ingress.

use alloc::vec::Vec;
use axon_wire::probe::{ProbeOptions, ProbeRecord, ProbeUnit};
use axon_wire::{Bytes, Hops, PortNo, Span, Time};
use serde::{Deserialize, Serialize};

/// Maximum number of probes of one plan.
pub const PROBES_PER_PLAN_MAX: u32 = 1000;
/// Maximum number of plans, finished ones included, that a node keeps; a new one replaces the
/// oldest finished one.
pub const PLANS_MAX: usize = 16;
/// Maximum duration of a plan, from its first probe until its last one is back or lost: a node runs
/// few plans at a time, and none can be cancelled.
pub const PLAN_SPAN_MAX: Span = Span::from_secs(3600);

/// Minimum time between probes of a plan, which limits the probes sent in one call of the node.
pub const PROBE_INTERVAL_MIN: Span = Span::from_micros(1);

/// Reasons for which a plan is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ProbeRefusal {
    /// The route is not a circuit back to the control plane that sends the probe.
    #[error("the route must go out and end at the control plane of the switch that sends it")]
    NoCircuit,
    /// A hop that the fabric's hop width cannot represent.
    #[error("a hop of the route does not fit the fabric's hop width")]
    Unrepresentable,
    /// Shorter than the probe's header and head, or than Ethernet.
    #[error("{bytes} bytes are too short for this probe; it needs {min} at least")]
    TooShort {
        /// The requested length in bytes.
        bytes: usize,
        /// The minimum length in bytes.
        min: usize,
    },
    /// With the records of all units the probe would be longer than the links accept.
    #[error("{bytes} bytes are too long: with its records this probe may have {max} at most")]
    TooLong {
        /// The requested length in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        max: usize,
    },
    /// A count of zero, or more than [`PROBES_PER_PLAN_MAX`].
    #[error("{0} probes, where 1 to {PROBES_PER_PLAN_MAX} were expected")]
    Count(u32),
    /// An interval outside [`PROBE_INTERVAL_MIN`] to [`PLAN_SPAN_MAX`].
    #[error("an interval of {0}, where {PROBE_INTERVAL_MIN} to {PLAN_SPAN_MAX} was expected")]
    Interval(Span),
    /// With its interval and its timeout the plan would take longer than [`PLAN_SPAN_MAX`].
    #[error("the plan may take {0}; expected at most {PLAN_SPAN_MAX}")]
    TooSlow(Span),
    /// An ether probe needs two different host ports with carrier.
    #[error("{0} is not a host port with carrier, or is named twice")]
    Port(PortNo),
    /// [`PLANS_MAX`] plans are not finished yet.
    #[error("{PLANS_MAX} plans are in flight already")]
    Busy,
}

/// Identifier of one plan of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProbeId(pub u64);

/// Path of probes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanKind {
    /// Along these hops, which end at the control plane that sends them.
    Circuit(Hops),
    /// Ether probes: out of one host port and in by another, through the Ethernet network outside.
    Ether {
        /// The host port that the probe leaves by, from 0.
        from: PortNo,
        /// The host port that the probe comes back by, from 0.
        to: PortNo,
    },
}

/// Plan of a series of probes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// Kind and path of the probes.
    pub kind: PlanKind,
    /// Initial bytes of each probe, header included, without FCS and records; 60 at least.
    pub bytes: usize,
    /// The number of probes to send.
    pub count: u32,
    /// Time between two probes, in ticks of 10 ps.
    #[serde(rename = "interval_ticks")]
    pub interval: Span,
    /// Time after which a probe is lost.
    #[serde(rename = "timeout_ticks")]
    pub timeout: Span,
    /// Records to be appended by the probe units on the way.
    pub options: ProbeOptions,
}

impl ProbePlan {
    /// Returns a plan of one probe of 60 bytes (64 with its FCS) with all options, a millisecond
    /// between probes, and a timeout of one second.
    pub const fn new(kind: PlanKind) -> ProbePlan {
        ProbePlan {
            kind,
            bytes: 60,
            count: 1,
            interval: Span::from_millis(1),
            timeout: Span::from_secs(1),
            options: ProbeOptions::ALL,
        }
    }

    /// Returns the maximum duration: all intervals, the timeout of the last probe, and that of the
    /// frame from which the network outside learns; saturates.
    pub fn span_max(&self) -> Span {
        self.interval * u64::from(self.count) + self.timeout * 2
    }

    /// Returns a plan of probes that leave by `out`, one port for each switch of a path but the
    /// last, and come back by `back`, the ports from the last switch to the first.
    pub fn out_and_back(out: &[PortNo], back: &[PortNo]) -> ProbePlan {
        let hops = out.iter().chain(back).copied().chain([PortNo::CONTROL]).collect();
        ProbePlan::new(PlanKind::Circuit(hops))
    }
}

/// Report of a plan so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The identity of the probe request.
    pub id: ProbeId,
    /// Plan of the probe that ran.
    pub plan: ProbePlan,
    /// Probes that the origin sent.
    pub sent: u32,
    /// Probes that have not come back in time.
    pub lost: u32,
    /// True if the network outside has forwarded the frame from which it learns; true for a
    /// circuit.
    pub learned: bool,
    /// Probes that came back, in order of return.
    pub returns: Vec<ProbeReturn>,
}

impl ProbeReport {
    /// Returns whether every probe came back or is lost.
    pub fn is_done(&self) -> bool {
        self.lost as usize + self.returns.len() >= self.plan.count as usize
    }
}

/// Probe that came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReturn {
    /// Number of the probe in the plan, from 0.
    pub number: u32,
    /// Time at which the origin created the probe.
    #[serde(rename = "sent_at_ticks")]
    pub sent_at: Time,
    /// Time at which the origin's control plane received the probe back.
    #[serde(rename = "back_at_ticks")]
    pub back_at: Time,
    /// Records appended on the way.
    pub records: Vec<ProbeRecord>,
}

/// Passage of a probe through one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The ingress port.
    pub ingress: PortNo,
    /// The egress port.
    pub egress: PortNo,
    /// Time from the ingress unit to the egress unit.
    pub residence: Span,
    /// Bytes queued for the egress port when the probe left.
    pub queued: Bytes,
    /// Time at the ingress unit, by that switch's clock.
    pub came_at: Time,
    /// Time at the egress unit, by that switch's clock.
    pub left_at: Time,
}

/// Times of one probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTimes {
    /// Time from the origin's egress unit to its ingress unit.
    pub total: Span,
    /// Port of the origin by which the probe left.
    pub out: PortNo,
    /// Port of the origin by which the probe came back.
    pub back: PortNo,
    /// The switches between, in order.
    pub passages: Vec<Passage>,
}

impl ProbeReturn {
    /// Returns the times; `None` unless every unit on the way has appended its record.
    pub fn times(&self) -> Option<ProbeTimes> {
        let (first, rest) = self.records.split_first()?;
        let (last, inner) = rest.split_last()?;
        let (pairs, odd) = inner.as_chunks::<2>();
        let ends = (first.unit, last.unit) == (ProbeUnit::Egress, ProbeUnit::Ingress);
        if !ends || !odd.is_empty() {
            return None;
        }
        let passage = |[came, left]: &[ProbeRecord; 2]| {
            let units = (came.unit, left.unit) == (ProbeUnit::Ingress, ProbeUnit::Egress);
            units.then(|| Passage {
                ingress: came.port,
                egress: left.port,
                residence: left.time.since(came.time),
                queued: left.queued,
                came_at: came.time,
                left_at: left.time,
            })
        };
        Some(ProbeTimes {
            total: last.time.since(first.time),
            out: first.port,
            back: last.port,
            passages: pairs.iter().map(passage).collect::<Option<Vec<_>>>()?,
        })
    }
}

impl ProbeTimes {
    /// Returns the time of each link of a path that was taken out and back, nearest first: both
    /// directions together. `None` if there is no middle: the number of passages is even.
    ///
    /// Passage `k` on the way out and passage `n - 1 - k` on the way back are the same switch, so
    /// the time from its first ingress stamp to its last egress stamp is by one clock. The time
    /// measured by the near switch around it, minus that, is the time of the link between.
    pub fn round_trips(&self) -> Option<Vec<Span>> {
        let passages = &self.passages;
        if passages.len().is_multiple_of(2) {
            return None;
        }
        let half = passages.len().div_ceil(2);
        let mut outer = self.total;
        let mut links = Vec::with_capacity(half);
        for index in 0..half {
            let (near, far) = (&passages[index], &passages[passages.len() - 1 - index]);
            let inside = far.left_at.since(near.came_at);
            links.push(Span::from_ticks(outer.ticks().saturating_sub(inside.ticks())));
            outer = far.came_at.since(near.left_at);
        }
        Some(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Returns records of a path out to the third switch and back, with three independent clocks.
    fn records() -> Vec<ProbeRecord> {
        let record = |unit, port, nanos| ProbeRecord {
            unit,
            port: PortNo(port),
            queued: Bytes(u64::from(port)),
            time: Time::from_nanos(nanos),
        };
        let (i, e) = (ProbeUnit::Ingress, ProbeUnit::Egress);
        vec![
            record(e, 1, 1000),
            record(i, 2, 70_100),
            record(e, 3, 70_150),
            record(i, 4, 500),
            record(e, 4, 520),
            record(i, 3, 70_190),
            record(e, 2, 70_200),
            record(i, 1, 1300),
        ]
    }

    fn returned(records: Vec<ProbeRecord>) -> ProbeReturn {
        ProbeReturn { number: 0, sent_at: Time::ZERO, back_at: Time::ZERO, records }
    }

    #[test]
    fn only_stamps_of_one_clock_are_compared() {
        let times = returned(records()).times().unwrap();
        let nanos = |span: Span| span.as_nanos();
        assert_eq!((nanos(times.total), times.out, times.back), (300, PortNo(1), PortNo(1)));
        let residence: Vec<u64> = times.passages.iter().map(|p| nanos(p.residence)).collect();
        assert_eq!(residence, [50, 20, 10]);
        assert_eq!(times.passages[1].queued, Bytes(4));
        // 300 out there, 100 of them beyond the second switch's ingress; 40, and 20 inside.
        let links: Vec<u64> = times.round_trips().unwrap().into_iter().map(nanos).collect();
        assert_eq!(links, [200, 20]);
    }

    #[test]
    fn a_missing_record_is_no_time() {
        for missing in 0..8 {
            let mut records = records();
            records.remove(missing);
            assert_eq!(returned(records).times(), None);
        }
        let mut swapped = records();
        swapped.swap(1, 2);
        assert_eq!(returned(swapped).times(), None);
        assert_eq!(returned(Vec::new()).times(), None);
        let mut cycle = records();
        cycle.drain(3..5);
        assert_eq!(returned(cycle).times().unwrap().round_trips(), None);
    }
}
