//! Probes of a node (thesis 000 §3.2.2): measurement plans and their results.
//!
//! A plan is a number of equal probes. Each is sent at its time and has until its timeout to
//! return; later ones are ignored. An ether probe has two steps: first a frame from the destination
//! port to the source port, so that the external network learns where the destination is, then the
//! measured frames once that has arrived.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_node::probe::{
    PLAN_SPAN_MAX, PLANS_MAX, PROBE_INTERVAL_MIN, PROBES_PER_PLAN_MAX, PlanKind, ProbeId,
    ProbePlan, ProbeRefusal, ProbeReport, ProbeReturn,
};
use axon_node::{Capabilities, PortView};
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::probe::{self, HEAD_BYTES, ProbeHead, ProbeOptions, ProbeView, RECORD_BYTES};
use axon_wire::{Hops, MacAddr, NodeId, PortNo, Time};

/// Frame that is due.
pub(super) enum Due {
    /// Inject this payload as a probe with these hops.
    Routed(Hops, Vec<u8>),
    /// Send this Ethernet frame out of this port.
    Ether(PortNo, Vec<u8>),
}

/// All probes of one node.
pub(super) struct Prober {
    origin: NodeId,
    mac: MacAddr,
    plans: u64,
    sequence: u32,
    runs: VecDeque<Run>,
    /// Earliest deadline of all runs, cached because it is needed after every frame.
    deadline: Option<Time>,
}

/// Plan in progress.
struct Run {
    report: ProbeReport,
    /// Time of the next probe; `None` when all are sent, or while the external network learns.
    next_at: Option<Time>,
    /// Probes in flight, oldest first.
    out: VecDeque<Outstanding>,
    /// Length of the head and its padding in bytes.
    body_bytes: u16,
}

#[derive(Clone, Copy)]
struct Outstanding {
    sequence: u32,
    /// Number in the plan; `None` for the learning frame.
    number: Option<u32>,
    sent_at: Time,
}

impl Prober {
    pub(crate) const fn new(origin: NodeId, mac: MacAddr) -> Prober {
        let runs = VecDeque::new();
        Prober { origin, mac, plans: 0, sequence: 0, runs, deadline: None }
    }

    pub(crate) const fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    pub(crate) fn reports(&self) -> impl Iterator<Item = &ProbeReport> {
        self.runs.iter().map(|run| &run.report)
    }

    /// Starts a plan; the first probe is due at once.
    pub(crate) fn begin(
        &mut self,
        now: Time,
        plan: ProbePlan,
        (has, ports): (&Capabilities, &impl PortView),
    ) -> Result<ProbeId, ProbeRefusal> {
        if plan.count == 0 || plan.count > PROBES_PER_PLAN_MAX {
            return Err(ProbeRefusal::Count(plan.count));
        }
        if plan.interval < PROBE_INTERVAL_MIN || plan.interval > PLAN_SPAN_MAX {
            return Err(ProbeRefusal::Interval(plan.interval));
        }
        let span = plan.span_max();
        if span > PLAN_SPAN_MAX {
            return Err(ProbeRefusal::TooSlow(span));
        }
        let body_bytes = body_bytes(&plan, has, ports)?;
        if self.runs.len() >= PLANS_MAX {
            let done = self.runs.iter().position(|run| run.report.is_done());
            self.runs.remove(done.ok_or(ProbeRefusal::Busy)?);
        }
        self.plans += 1;
        let id = ProbeId(self.plans);
        let learned = matches!(plan.kind, PlanKind::Circuit(_));
        let report = ProbeReport { id, plan, sent: 0, lost: 0, learned, returns: Vec::new() };
        self.runs.push_back(Run { report, next_at: Some(now), out: VecDeque::new(), body_bytes });
        self.settle();
        Ok(id)
    }

    /// Expires probes past their timeout, and builds the next frame that is due.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Due> {
        if self.deadline.is_none_or(|at| at > now) {
            return None;
        }
        for run in &mut self.runs {
            run.expire(now);
        }
        let run = self.runs.iter_mut().find(|run| run.next_at.is_some_and(|at| at <= now));
        let due = run.map(|run| {
            self.sequence = self.sequence.wrapping_add(1);
            run.send(now, (self.origin, self.mac, self.sequence))
        });
        self.settle();
        due
    }

    /// Handles a source-routed probe that has returned; returns whether it was expected.
    pub(crate) fn routed_came(&mut self, now: Time, payload: &[u8]) -> bool {
        self.came(now, payload, |_, _| true)
    }

    /// Handles an ether probe that has arrived at `port`; returns whether it was expected there.
    pub(crate) fn ether_came(&mut self, now: Time, port: PortNo, frame: &[u8]) -> bool {
        let expected = probe::ether_address(self.mac, port);
        if MacAddr::destination_of(frame) != Some(expected) {
            return false;
        }
        let payload = frame.get(ETHERNET_BYTES..).unwrap_or_default();
        self.came(now, payload, |kind, number| match *kind {
            PlanKind::Circuit(_) => false,
            PlanKind::Ether { from, to } => port == if number.is_some() { to } else { from },
        })
    }

    fn came(
        &mut self,
        now: Time,
        payload: &[u8],
        fits: impl Fn(&PlanKind, Option<u32>) -> bool,
    ) -> bool {
        let Ok(view) = ProbeView::parse(payload) else {
            return false;
        };
        let head = view.head();
        if head.origin != self.origin {
            return false;
        }
        for run in &mut self.runs {
            let Some(place) = run.out.iter().position(|out| out.sequence == head.sequence) else {
                continue;
            };
            if !fits(&run.report.plan.kind, run.out[place].number) {
                return false;
            }
            run.back(now, place, &view);
            self.settle();
            return true;
        }
        false
    }

    fn settle(&mut self) {
        self.deadline = self.runs.iter().filter_map(Run::deadline).min();
    }
}

impl Run {
    fn deadline(&self) -> Option<Time> {
        let expiry = self.out.front().map(|out| out.sent_at + self.report.plan.timeout);
        [self.next_at, expiry].into_iter().flatten().min()
    }

    fn expire(&mut self, now: Time) {
        let timeout = self.report.plan.timeout;
        while let Some(out) = self.out.front().filter(|out| out.sent_at + timeout <= now) {
            match out.number {
                Some(_) => self.report.lost += 1,
                // The external network does not connect the two ports, so no probe will return.
                None => {
                    self.report.lost = self.report.plan.count;
                    self.next_at = None;
                }
            }
            self.out.pop_front();
        }
    }

    fn send(&mut self, now: Time, (origin, mac, sequence): (NodeId, MacAddr, u32)) -> Due {
        let report = &mut self.report;
        let teaches = !report.learned;
        let options = if teaches { ProbeOptions::default() } else { report.plan.options };
        let head = ProbeHead { options, body_bytes: self.body_bytes, sequence, origin };
        let number = (!teaches).then_some(report.sent);
        self.out.push_back(Outstanding { sequence, number, sent_at: now });
        if teaches {
            self.next_at = None;
        } else {
            report.sent += 1;
            let more = report.sent < report.plan.count;
            self.next_at = more.then(|| now + report.plan.interval);
        }
        match &report.plan.kind {
            PlanKind::Circuit(hops) => Due::Routed(hops.clone(), head.emit()),
            &PlanKind::Ether { from, to } => {
                let (from, to) = if teaches { (to, from) } else { (from, to) };
                let address = |port| probe::ether_address(mac, port);
                Due::Ether(from, head.emit_ether(address(to), address(from)))
            }
        }
    }

    fn back(&mut self, now: Time, place: usize, view: &ProbeView<'_>) {
        let Some(out) = self.out.remove(place) else {
            return;
        };
        let Some(number) = out.number else {
            self.report.learned = true;
            self.next_at = Some(now);
            return;
        };
        let records = view.records().collect();
        let back = ProbeReturn { number, sent_at: out.sent_at, back_at: now, records };
        self.report.returns.push(back);
    }
}

/// Returns the length of head and padding, in bytes, for a probe of the plan's length.
fn body_bytes(
    plan: &ProbePlan,
    has: &Capabilities,
    ports: &impl PortView,
) -> Result<u16, ProbeRefusal> {
    let (header, records, most) = match &plan.kind {
        PlanKind::Circuit(hops) => {
            let out = hops.split_last().filter(|(last, out)| {
                **last == PortNo::CONTROL && !out.is_empty() && !out.contains(&PortNo::CONTROL)
            });
            let (_, out) = out.ok_or(ProbeRefusal::NoCircuit)?;
            if !out.iter().all(|&port| has.hop_width.can_name(port)) {
                return Err(ProbeRefusal::Unrepresentable);
            }
            let header = has.hop_width.header_bytes(hops.len());
            (header, 2 * out.len(), has.probe_bytes_max())
        }
        &PlanKind::Ether { from, to } => {
            let usable = |port| ports.is_host(port) && ports.is_up(port);
            if let Some(bad) = [from, to].into_iter().find(|&port| !usable(port) || from == to) {
                return Err(ProbeRefusal::Port(bad));
            }
            (ETHERNET_BYTES, 2, has.frame_bytes_max)
        }
    };
    let min = (header + HEAD_BYTES).max(FRAME_BYTES_MIN);
    let max = most.saturating_sub(records * RECORD_BYTES);
    if plan.bytes < min {
        return Err(ProbeRefusal::TooShort { bytes: plan.bytes, min });
    }
    let body = u16::try_from(plan.bytes - header).ok().filter(|_| plan.bytes <= max);
    body.ok_or(ProbeRefusal::TooLong { bytes: plan.bytes, max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::Dataplane;
    use axon_plane::{Plane, PlaneConfig};
    use axon_wire::Span;

    #[test]
    fn plans_that_would_never_end_are_refused_and_others_find_room() {
        let mac = MacAddr([2; 6]);
        let plane: Plane = Plane::new(PlaneConfig::with_ports(2, mac));
        let has = plane.capabilities();
        let mut prober = Prober::new(NodeId(1), mac);
        let good = ProbePlan::out_and_back(&[PortNo(0)], &[PortNo(0)]);
        let (never, slow) = (Span::from_ticks(u64::MAX), Span::from_secs(4));
        for _ in 0..PLANS_MAX {
            for plan in [
                ProbePlan { timeout: never, ..good.clone() },
                ProbePlan { interval: slow, count: 1_000, ..good.clone() },
            ] {
                let span = plan.span_max();
                let refused = prober.begin(Time::ZERO, plan, (&has, &plane));
                assert_eq!(refused, Err(ProbeRefusal::TooSlow(span)));
            }
        }
        for interval in [Span::ZERO, never, PLAN_SPAN_MAX + Span::from_micros(1)] {
            let plan = ProbePlan { interval, count: 1_000, ..good.clone() };
            let refused = prober.begin(Time::ZERO, plan, (&has, &plane));
            assert_eq!(refused, Err(ProbeRefusal::Interval(interval)));
        }
        assert_eq!(prober.begin(Time::ZERO, good, (&has, &plane)), Ok(ProbeId(1)));
    }
}
