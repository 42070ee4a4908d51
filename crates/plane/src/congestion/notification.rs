//! Congestion signalling from the queues of a switch to the sources that fill them: congestion
//! notification messages (IEEE 802.1Q clause 30) and marks in the IP header (RFC 3168).
//!
//! A frame that is about to be queued, in a class that is watched, is passed first to the marker of
//! that queue, which may mark or drop it, and then to the queue's congestion point, if its priority
//! is under congestion notification (a CNPV). The point samples some frames; if the queue is too
//! long then, the source of the frame gets a CNM. A frame that finds the wire free bypasses both,
//! since its queue is empty.
//!
//! The edge of the domain is at host ports: frames of hosts outside it are moved out of its
//! priorities at ingress, and lose their CN-TAGs at egress ([`Treatment`]). Between switches every
//! priority is interior ready, since all switches belong to the domain.
//!
//! A frame that is then dropped for want of room has been passed to both all the same, since its
//! source contributes to the queue. [`CnConfig`] and [`EcnConfig`] configure each port; the way of
//! the message is in `axon/congestion.rs`.

use crate::congestion::ecn::{Ecn, EcnError, NotCapable, Profile, Verdict};
use crate::congestion::qcn::{
    CongestionPoint, CpConfig, CpError, Feedback, InputPriority, Treatment,
};
use alloc::vec::Vec;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, MacAddr, PortNo, Time};

/// Congestion notification configuration of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CnConfig {
    /// The priorities in the domain (CNPVs), at most seven. Each class of one of them has a
    /// congestion point at every port.
    pub cnpvs: PrioritySet,
    /// Congestion points and CNM format, by port.
    pub points: Vec<CpConfig>,
    /// `cngCnmTransmitPriority`: the priority of CNMs. Sources disagree on whether the default is
    /// 6.
    pub cnm_priority: Priority,
    /// Treatment of frames of hosts at the edge of the domain, by port and priority. Ports between
    /// switches need none, and have none.
    pub treatments: Vec<[Treatment; PRIORITIES]>,
}

/// Marking configuration of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnConfig {
    /// Queue length and fraction of frames at which marking applies.
    pub profile: Profile,
    /// Handling of frames that cannot be marked.
    pub not_capable: NotCapable,
}

/// Errors in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotificationError {
    /// All priorities are CNPVs, so frames from outside the domain would have none left.
    #[error("eight priorities under congestion notification, where seven are the most")]
    AllPriorities,
    /// An invalid value of a congestion point.
    #[error("congestion point of {0}: {1}")]
    Point(PortNo, CpError),
    /// An invalid value of a marker.
    #[error("marking at {0}, class {1}: {2}")]
    Ecn(PortNo, TrafficClass, EcnError),
    /// Frames from outside would be moved into the domain.
    #[error("{0} moves frames to priority {1}, which is under congestion notification")]
    Moved(PortNo, Priority),
}

/// Treatment where hosts belong to the domain, or there is none: frames are unchanged.
pub(crate) const UNDEFENDED: Treatment = Treatment { input: InputPriority::Kept, strip_tag: false };

impl CnConfig {
    /// Returns congestion points with the MIB's defaults at this many ports, for hosts that act on
    /// CNMs and support CN-TAGs.
    pub fn new(ports: u16, cnpvs: PrioritySet) -> CnConfig {
        CnConfig {
            cnpvs,
            points: alloc::vec![CpConfig::default(); usize::from(ports)],
            cnm_priority: Priority::from_low_bits(6),
            treatments: alloc::vec![[UNDEFENDED; PRIORITIES]; usize::from(ports)],
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// Eight CNPVs, a value outside its range, or an alternate priority that is a CNPV.
    pub fn check(&self) -> Result<(), NotificationError> {
        if self.cnpvs == PrioritySet::ALL {
            return Err(NotificationError::AllPriorities);
        }
        for (port, point) in self.points.iter().enumerate() {
            point.check().map_err(|error| NotificationError::Point(PortNo(port as u16), error))?;
        }
        for (port, treatments) in self.treatments.iter().enumerate() {
            for treatment in treatments {
                if let InputPriority::Moved(to) = treatment.input
                    && self.cnpvs.contains(to)
                {
                    return Err(NotificationError::Moved(PortNo(port as u16), to));
                }
            }
        }
        Ok(())
    }
}

/// Returns the CPID of a congestion point: MAC of the switch, port, class. Unique up to 8192 ports.
pub fn cpid(switch: MacAddr, port: PortNo, class: TrafficClass) -> u64 {
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&switch.0);
    let number = port.0 << 3 | u16::from(class.value());
    u64::from_be_bytes(bytes) << 16 | u64::from(number)
}

/// Congestion points and markers of one port, by traffic class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    points: [Option<CongestionPoint>; PRIORITIES],
    markers: [Option<Ecn>; PRIORITIES],
}

/// Congestion signal of a queue for a frame that joins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CongestionSignal {
    pub(crate) verdict: Verdict,
    /// The feedback of a CNM to the frame's source, if one is due.
    pub(crate) feedback: Option<Feedback>,
}

impl Watch {
    /// Returns the congestion points and markers that `cn` and `ecn` configure for `port`.
    /// `prio_tc` maps a priority to its class; `switch` seeds the random numbers.
    pub(crate) fn new(
        cn: Option<&CnConfig>,
        ecn: &[Option<EcnConfig>; PRIORITIES],
        (switch, port): (MacAddr, PortNo),
        prio_tc: &[TrafficClass; PRIORITIES],
    ) -> Result<Watch, NotificationError> {
        let mut watch = Watch::default();
        for class in TrafficClass::ALL {
            let seed = cpid(switch, port, class);
            if let Some(EcnConfig { profile, not_capable }) = ecn[class.index()] {
                let marker = Ecn::new(profile, not_capable, seed);
                let marker = marker.map_err(|error| NotificationError::Ecn(port, class, error))?;
                watch.markers[class.index()] = Some(marker);
            }
            let maps = |priority: Priority| prio_tc[priority.index()] == class;
            if let Some(cn) = cn.filter(|cn| cn.cnpvs.iter().any(maps)) {
                let point = CongestionPoint::new(cn.points[port.index()], seed);
                let point = point.map_err(|error| NotificationError::Point(port, error))?;
                watch.points[class.index()] = Some(point);
            }
        }
        Ok(watch)
    }

    /// Returns the number of frames that the congestion points of all classes have sampled.
    pub(crate) fn samples(&self) -> u64 {
        self.points.iter().flatten().map(CongestionPoint::samples).sum()
    }

    /// Returns whether any class is watched.
    pub(crate) fn is_any(&self) -> bool {
        self.points.iter().any(Option::is_some) || self.markers.iter().any(Option::is_some)
    }

    /// Processes `frame`, an Ethernet frame that joins the queue of `class` with `queue` bytes in
    /// it and takes `bytes` bytes there. The congestion point processes it only if `sampled`.
    pub(crate) fn arrives(
        &mut self,
        now: Time,
        (class, queue): (TrafficClass, Bytes),
        (frame, bytes): (&mut [u8], Bytes),
        sampled: bool,
    ) -> CongestionSignal {
        let verdict = match &mut self.markers[class.index()] {
            Some(marker) => marker.arrives(now, queue, frame),
            None => Verdict::Pass,
        };
        let point = self.points[class.index()].as_mut();
        let point = point.filter(|_| sampled && verdict != Verdict::Drop);
        let feedback = point.and_then(|point| point.enqueued(bytes, Bytes(queue.0 + bytes.0)));
        CongestionSignal { verdict, feedback }
    }

    /// Records that the last frame has left the queue of `class`.
    pub(crate) fn emptied(&mut self, now: Time, class: TrafficClass) {
        if let Some(marker) = &mut self.markers[class.index()] {
            marker.emptied(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

    fn priority(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    #[test]
    fn a_point_is_named_by_switch_port_and_class() {
        let name = cpid(MAC, PortNo(5), TrafficClass::new(3).unwrap());
        assert_eq!(name, 0x0200_0000_0007_002b);
    }

    #[test]
    fn only_classes_of_priorities_in_the_domain_have_points() {
        let cn = CnConfig::new(1, PrioritySet::only(priority(3)));
        let mut prio_tc = TrafficClass::ALL;
        prio_tc[3] = TrafficClass::ALL[1];
        let none = [None; PRIORITIES];
        let watch = Watch::new(Some(&cn), &none, (MAC, PortNo(0)), &prio_tc).unwrap();
        let found: Vec<bool> = watch.points.iter().map(Option::is_some).collect();
        assert_eq!(found, [false, true, false, false, false, false, false, false]);
        assert!(watch.is_any());
        let watch = Watch::new(None, &none, (MAC, PortNo(0)), &prio_tc).unwrap();
        assert!(!watch.is_any());
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let all = CnConfig::new(2, PrioritySet::ALL);
        assert_eq!(all.check(), Err(NotificationError::AllPriorities));
        let mut moved = CnConfig::new(2, PrioritySet::from_bits(0x18));
        assert_eq!(moved.check(), Ok(()));
        moved.treatments[1][3] =
            Treatment { input: InputPriority::Moved(priority(4)), strip_tag: true };
        assert_eq!(moved.check(), Err(NotificationError::Moved(PortNo(1), priority(4))));
        let mut short = CnConfig::new(2, PrioritySet::EMPTY);
        short.points[1].set_point = Bytes(99);
        let error = NotificationError::Point(PortNo(1), CpError::SetPoint(Bytes(99)));
        assert_eq!(short.check(), Err(error));
        assert_eq!(
            alloc::format!("{error}"),
            "congestion point of p1: a set point of 99 bytes, where 100 is the least"
        );
    }
}
