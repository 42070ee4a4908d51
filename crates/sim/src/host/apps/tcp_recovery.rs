//! Recovery from the loss of several segments at once, by selective acknowledgments.
//!
//! The stack's receiver sends SACK blocks (RFC 2018), but its sender ignores them. The sender
//! retransmits the first lost segment after three duplicate acknowledgments, and repairs every
//! other loss of that window after its retransmission timeout. So the host observes the segments
//! that it sends and receives, keeps those that are not acknowledged, and does the rest of RFC
//! 6675:
//!
//! - Every sent segment has an order. An unacknowledged segment is lost when one sent three or more
//!   places later has arrived (RFC 6675 clause 4, `IsLost`; by order instead of sequence number, as
//!   RFC 8985 does by time, so that a lost retransmission is detected too).
//! - Recovery begins with the stack's own fast retransmit, which halves its window, and ends when
//!   everything sent until then is acknowledged (clause 5). So all losses of a window cause one
//!   reduction.
//! - In recovery, each acknowledgment that reports an arrival releases as many lost segments, the
//!   first ones first (packet conservation, RFC 6937). Until the end the host hides further
//!   duplicate acknowledgments from the stack, which would count them as another loss and send new
//!   data.
//! - The stack's retransmission timeout ends recovery; the stack then retransmits everything.

use super::tcp_segment::{Segment, is_before, refresh};
use axon_wire::FrameBuf;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// A segment is lost when one sent this many places later has arrived. Also the stack's own
/// threshold of duplicate acknowledgments (RFC 5681 clause 3.2).
const REORDERING: u64 = 3;
/// Maximum number of vectors kept for reuse.
const SPARE_MAX: usize = 64;

/// Local port, peer address and peer port.
type Connection = (u16, Ipv4Addr, u16);

/// Unacknowledged segment.
#[derive(Debug)]
struct Sent {
    sequence: u32,
    end: u32,
    frame: Vec<u8>,
    /// Order of the last transmission.
    order: u64,
    sacked: bool,
    /// True if the segment waits for retransmission.
    queued: bool,
}

/// Sender side of a connection.
#[derive(Debug, Default)]
struct Sender {
    sent: VecDeque<Sent>,
    /// Order of the last sent segment.
    order: u64,
    /// Greatest order among the segments that have arrived.
    arrived: u64,
    /// Acknowledgment and window of the last sent segment.
    says: (u32, u16),
    /// Acknowledgment and window of the last received segment.
    heard: (u32, u16),
    /// Duplicate acknowledgments since that segment.
    duplicates: u64,
    /// Received blocks beyond the acknowledgment, disjoint and in order.
    blocks: Vec<(u32, u32)>,
    /// In recovery: end of the data sent before it began.
    recover: Option<u32>,
    /// Order of the last segment sent before recovery began.
    begun: u64,
    /// In recovery: lost segments before this number have been found.
    searched: u32,
    /// Retransmissions of this recovery: order and sequence number.
    resent: VecDeque<(u64, u32)>,
    /// True if the last byte was sent.
    is_closing: bool,
}

/// Action for a received frame.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// True if to hide the frame from the stack.
    pub(crate) hide: bool,
    /// Frames to retransmit.
    pub(crate) again: Vec<FrameBuf>,
}

/// Recovery state of all connections of a host.
#[derive(Debug, Default)]
pub(crate) struct TcpRecovery {
    senders: BTreeMap<Connection, Sender>,
    spare: Vec<Vec<u8>>,
}

impl TcpRecovery {
    /// Records a sent segment.
    pub(crate) fn sent(&mut self, segment: &Segment, frame: &[u8]) {
        let connection = (segment.from.1, segment.to.0, segment.to.1);
        if segment.syn || segment.rst {
            // The connection starts or ends.
            self.senders.remove(&connection);
            return;
        }
        if segment.bytes == 0 && !self.senders.contains_key(&connection) {
            return;
        }
        let sender = self.senders.entry(connection).or_default();
        sender.says = (segment.acknowledgment.unwrap_or(sender.says.0), segment.window);
        sender.is_closing |= segment.fin;
        if segment.bytes == 0 {
            return;
        }
        sender.order += 1;
        if sender.sent.front().is_some_and(|first| first.sequence == segment.sequence)
            && !sender.sent[0].queued
        {
            // Neither fast retransmit nor this recovery: the stack's timeout.
            sender.end();
        }
        if let Some(known) = sender.at(segment.sequence) {
            let known = &mut sender.sent[known];
            (known.order, known.queued) = (sender.order, false);
            if sender.recover.is_some() {
                sender.resent.push_back((sender.order, segment.sequence));
            }
            if is_before(known.end, segment.end()) {
                // The byte of a window probe is resent with what follows it.
                known.end = segment.end();
                known.frame.clear();
                known.frame.extend_from_slice(frame);
            }
        } else if sender.sent.back().is_none_or(|last| !is_before(segment.end(), last.end)) {
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(frame);
            sender.sent.push_back(Sent {
                sequence: segment.sequence,
                end: segment.end(),
                frame: copy,
                order: sender.order,
                sacked: false,
                queued: false,
            });
        }
    }

    /// Processes a received segment.
    pub(crate) fn received(&mut self, segment: &Segment, frame: &[u8]) -> Verdict {
        let connection = (segment.to.1, segment.from.0, segment.from.1);
        let Some(sender) = self.senders.get_mut(&connection) else { return Verdict::default() };
        let Some(acknowledgment) = segment.acknowledgment.filter(|_| !segment.syn && !segment.rst)
        else {
            self.senders.remove(&connection);
            return Verdict::default();
        };
        let mut arrived = sender.acknowledge(acknowledgment, &mut self.spare);
        arrived += segment.sacked(frame).map(|block| sender.sack(block)).sum::<usize>();
        if sender.is_closing && sender.sent.is_empty() {
            self.senders.remove(&connection);
            return Verdict::default();
        }
        let heard = (acknowledgment, segment.window);
        let duplicate = segment.bytes == 0
            && !segment.fin
            && sender.heard == heard
            && sender.sent.front().is_some_and(|first| first.sequence == acknowledgment);
        sender.heard = heard;
        sender.duplicates = if duplicate { sender.duplicates + 1 } else { 0 };
        if sender.recover.is_some_and(|end| !is_before(acknowledgment, end)) {
            sender.end();
        }
        if sender.recover.is_none() {
            if sender.duplicates == REORDERING {
                sender.begin();
            }
            return Verdict::default();
        }
        Verdict { hide: duplicate, again: sender.lost(arrived) }
    }
}

impl Sender {
    /// Returns the index of the segment that begins with this number.
    fn at(&self, sequence: u32) -> Option<usize> {
        let first = self.sent.front()?.sequence;
        let from_first = |number: u32| number.wrapping_sub(first) as i32;
        self.sent.binary_search_by_key(&from_first(sequence), |of| from_first(of.sequence)).ok()
    }

    /// Begins recovery. The stack retransmits the first segment.
    fn begin(&mut self) {
        (self.recover, self.begun) = (self.sent.back().map(|last| last.end), self.order);
        if let Some(first) = self.sent.front_mut() {
            first.queued = true;
            self.searched = first.sequence;
        }
    }

    /// Ends recovery.
    fn end(&mut self) {
        self.recover = None;
        self.resent.clear();
    }

    /// Removes everything before `acknowledgment`. Returns the number of newly arrived segments.
    fn acknowledge(&mut self, acknowledgment: u32, spare: &mut Vec<Vec<u8>>) -> usize {
        let mut arrived = 0;
        while self.sent.front().is_some_and(|first| !is_before(acknowledgment, first.end)) {
            let Some(first) = self.sent.pop_front() else { break };
            self.arrived = self.arrived.max(first.order);
            arrived += usize::from(!first.sacked);
            if spare.len() < SPARE_MAX {
                spare.push(first.frame);
            }
        }
        self.blocks.retain(|block| is_before(acknowledgment, block.1));
        if is_before(self.searched, acknowledgment) {
            self.searched = acknowledgment;
        }
        arrived
    }

    /// Records a SACK block. Returns the number of newly arrived segments.
    fn sack(&mut self, block: (u32, u32)) -> usize {
        let (mut at, mut arrived) = (block.0, 0);
        let known = std::mem::take(&mut self.blocks);
        for &(from, to) in known.iter().filter(|known| is_before(block.0, known.1)) {
            if is_before(at, from) && is_before(at, block.1) {
                arrived += self.mark(at, if is_before(from, block.1) { from } else { block.1 });
            }
            at = if is_before(at, to) { to } else { at };
        }
        if is_before(at, block.1) {
            arrived += self.mark(at, block.1);
        }
        // Merge with the blocks that it touches.
        let (mut whole, mut place) = (block, 0);
        for (from, to) in known {
            if is_before(to, block.0) {
                self.blocks.push((from, to));
                place += 1;
            } else if is_before(block.1, from) {
                self.blocks.push((from, to));
            } else {
                whole.0 = if is_before(from, whole.0) { from } else { whole.0 };
                whole.1 = if is_before(whole.1, to) { to } else { whole.1 };
            }
        }
        self.blocks.insert(place, whole);
        arrived
    }

    /// Marks the segments between these numbers as arrived. Returns their number.
    fn mark(&mut self, from: u32, to: u32) -> usize {
        let Some(first) = self.sent.front().map(|first| first.sequence) else { return 0 };
        let from_first = |number: u32| number.wrapping_sub(first) as i32;
        let start = self.sent.partition_point(|of| from_first(of.sequence) < from_first(from));
        let inside = self.sent.iter_mut().skip(start).take_while(|of| !is_before(to, of.end));
        let mut arrived = 0;
        for of in inside.filter(|of| !of.sacked) {
            of.sacked = true;
            self.arrived = self.arrived.max(of.order);
            arrived += 1;
        }
        arrived
    }

    /// Returns the first lost segments for retransmission, at most `most`: lost retransmissions
    /// first, then newly found losses.
    fn lost(&mut self, most: usize) -> Vec<FrameBuf> {
        let mut again = Vec::new();
        while again.len() < most {
            let overtaken = |order: u64| order + REORDERING <= self.arrived;
            if let Some(&(order, sequence)) = self.resent.front()
                && overtaken(order)
            {
                self.resent.pop_front();
                let place = self.at(sequence);
                again.extend(
                    place.filter(|&at| self.sent[at].order == order).and_then(|at| self.take(at)),
                );
                continue;
            }
            let Some(first) = self.sent.front().map(|first| first.sequence) else { break };
            let from_first = |number: u32| number.wrapping_sub(first) as i32;
            let next = from_first(self.searched);
            let at = self.sent.partition_point(|of| from_first(of.sequence) < next);
            let before = |of: &&Sent| self.recover.is_some_and(|end| is_before(of.sequence, end));
            match self.sent.get(at).filter(before) {
                // Retransmitted segments are tracked in `resent`.
                Some(of) if of.sacked || of.order > self.begun || overtaken(of.order) => {
                    let resent = of.order > self.begun;
                    self.searched = of.end;
                    again.extend(if resent { None } else { self.take(at) });
                }
                _ => break,
            }
        }
        again
    }

    /// Returns the segment at this index for retransmission, if it is needed.
    fn take(&mut self, at: usize) -> Option<FrameBuf> {
        let of = &mut self.sent[at];
        if of.sacked || of.queued {
            return None;
        }
        of.queued = true;
        let mut frame = FrameBuf::new(&of.frame);
        refresh(frame.bytes_mut(), self.says.0, self.says.1);
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tcp_segment::sample::{Says, frame};
    use super::*;
    use smoltcp::wire::TcpControl;

    const BYTES: u32 = 100;

    /// Sender that has sent a number of segments of 100 bytes from number 1000.
    struct Scene(TcpRecovery);

    fn number(segment: u32) -> u32 {
        1000 + segment * BYTES
    }

    impl Scene {
        fn new(segments: u32) -> Scene {
            let mut scene = Scene(TcpRecovery::default());
            (0..segments).for_each(|segment| scene.send(segment));
            scene
        }

        fn send(&mut self, segment: u32) {
            let payload = &[segment as u8; BYTES as usize];
            let says = Says { sequence: number(segment), payload, ..Says::default() };
            let frame = frame(true, &says);
            self.0.sent(&Segment::parse(&frame).unwrap(), &frame);
        }

        /// Processes an acknowledgment up to a segment, with blocks of segments. Returns whether it
        /// is hidden, and the retransmitted segments.
        fn ack(&mut self, up_to: u32, blocks: &[(u32, u32)]) -> (bool, Vec<u32>) {
            let mut sacked = [None; 3];
            for (place, (from, to)) in sacked.iter_mut().zip(blocks) {
                *place = Some((number(*from), number(*to)));
            }
            let says = Says { acknowledgment: number(up_to), sacked, ..Says::default() };
            let frame = frame(false, &says);
            let verdict = self.0.received(&Segment::parse(&frame).unwrap(), &frame);
            let mut again = Vec::new();
            for frame in verdict.again {
                let segment = Segment::parse(frame.bytes()).unwrap();
                self.0.sent(&segment, frame.bytes());
                again.push((segment.sequence - 1000) / BYTES);
            }
            (verdict.hide, again)
        }

        /// Processes the acknowledgments that make the stack retransmit segment `first`, whose
        /// successors have arrived, and the retransmission.
        fn enter(&mut self, first: u32) {
            assert_eq!(self.ack(first, &[]), (false, vec![]));
            for next in 2..5 {
                assert_eq!(self.ack(first, &[(first + 1, first + next)]), (false, vec![]));
            }
            self.send(first);
        }
    }

    #[test]
    fn each_segment_that_has_arrived_lets_one_lost_one_leave_and_the_stack_sees_no_duplicate() {
        let mut scene = Scene::new(20);
        // 0, 4, 5 and 7 are lost.
        scene.enter(0);
        assert_eq!(scene.ack(0, &[(6, 7)]), (true, vec![]), "4 left two places before 6");
        assert_eq!(scene.ack(0, &[(8, 9)]), (true, vec![4]));
        assert_eq!(scene.ack(0, &[(8, 10)]), (true, vec![5]));
        assert_eq!(scene.ack(0, &[(8, 11)]), (true, vec![7]));
        assert_eq!(scene.ack(0, &[(8, 12)]), (true, vec![]));
        assert_eq!(scene.ack(0, &[(8, 20)]), (true, vec![]));
        assert_eq!(scene.ack(4, &[(8, 20)]), (false, vec![]), "a new one is for the stack");
        assert_eq!(scene.ack(4, &[(8, 20)]), (true, vec![]));
        assert_eq!(scene.ack(20, &[]), (false, vec![]));
        assert!(scene.0.senders.values().all(|of| of.sent.is_empty() && of.recover.is_none()));
    }

    #[test]
    fn one_that_is_lost_again_leaves_again_once_later_ones_have_arrived() {
        let mut scene = Scene::new(20);
        scene.enter(0);
        // 4 is lost, and is retransmitted after 20 others and the first.
        assert_eq!(scene.ack(0, &[(5, 8)]), (true, vec![4]));
        assert_eq!(scene.ack(0, &[(5, 20)]), (true, vec![]), "all of them left before");
        (20..24).for_each(|segment| scene.send(segment));
        assert_eq!(scene.ack(4, &[(5, 22)]), (false, vec![]));
        assert_eq!(scene.ack(4, &[(5, 23)]), (true, vec![4]));
        assert_eq!(scene.ack(4, &[(5, 24)]), (true, vec![]), "it is on its way");
    }

    #[test]
    fn without_recovery_duplicates_are_the_stacks_and_nothing_leaves_twice() {
        let mut scene = Scene::new(10);
        assert_eq!(scene.ack(0, &[]), (false, vec![]));
        assert_eq!(scene.ack(0, &[(3, 9)]), (false, vec![]));
        assert_eq!(scene.ack(0, &[(3, 10)]), (false, vec![]));
        // A segment with data or another window is no duplicate.
        let says = Says { acknowledgment: number(0), payload: b"x", ..Says::default() };
        let data = frame(false, &says);
        assert!(!scene.0.received(&Segment::parse(&data).unwrap(), &data).hide);
        assert_eq!(scene.ack(0, &[(3, 10)]), (false, vec![]));
        assert_eq!(scene.ack(0, &[(3, 10)]), (false, vec![]));
        assert!(scene.0.senders.values().all(|of| of.recover.is_none()));
    }

    #[test]
    fn blocks_that_touch_become_one_and_a_segment_arrives_once() {
        let mut scene = Scene::new(12);
        let sender = scene.0.senders.values_mut().next().unwrap();
        let mut sack = |from, to| sender.sack((number(from), number(to)));
        assert_eq!([sack(2, 3), sack(5, 7), sack(9, 10)], [1, 2, 1]);
        assert_eq!([sack(5, 7), sack(6, 8), sack(1, 2)], [0, 1, 1]);
        assert_eq!(sack(0, 11), 5, "0, 3, 4, 8 and 10");
        assert_eq!(sender.blocks, [(number(0), number(11))]);
        sender.sack((number(11), number(12)));
        sender.acknowledge(number(12), &mut Vec::new());
        assert!(sender.blocks.is_empty() && sender.sent.is_empty());
    }

    #[test]
    fn a_timeout_of_the_stack_ends_recovery() {
        let mut scene = Scene::new(10);
        scene.enter(0);
        scene.send(0);
        assert_eq!(scene.ack(0, &[(1, 8)]), (false, vec![]));
    }

    #[test]
    fn a_connection_that_has_ended_is_forgotten() {
        let mut scene = Scene::new(3);
        let fin = Says { sequence: number(3), control: TcpControl::Fin, ..Says::default() };
        let fin = frame(true, &fin);
        scene.0.sent(&Segment::parse(&fin).unwrap(), &fin);
        scene.ack(2, &[]);
        assert_eq!(scene.0.senders.len(), 1);
        scene.ack(3, &[]);
        assert_eq!(scene.0.senders.len(), 0);
    }

    #[test]
    fn numbers_may_pass_their_end_and_a_new_connection_begins_with_nothing() {
        let mut recovery = TcpRecovery::default();
        let start = u32::MAX - 250;
        let at = |segment: u32| start.wrapping_add(segment * BYTES);
        let send = |recovery: &mut TcpRecovery, segment| {
            let payload = &[1; BYTES as usize];
            let frame = frame(true, &Says { sequence: at(segment), payload, ..Says::default() });
            recovery.sent(&Segment::parse(&frame).unwrap(), &frame);
        };
        (0..8).for_each(|segment| send(&mut recovery, segment));
        let receive = |recovery: &mut TcpRecovery, up_to, to| {
            let sacked = [Some((at(up_to + 1), at(to))), None, None];
            let says = Says { acknowledgment: at(up_to), sacked, ..Says::default() };
            let frame = frame(false, &says);
            let verdict = recovery.received(&Segment::parse(&frame).unwrap(), &frame);
            (verdict.hide, verdict.again.len())
        };
        for to in [3, 4, 5, 6] {
            assert_eq!(receive(&mut recovery, 1, to), (false, 0));
        }
        send(&mut recovery, 1);
        assert_eq!(receive(&mut recovery, 1, 8), (true, 0));
        let sender = recovery.senders.values().next().unwrap();
        assert_eq!((sender.sent.len(), sender.recover), (7, Some(at(8))));
        let syn = frame(true, &Says { control: TcpControl::Syn, ..Says::default() });
        recovery.sent(&Segment::parse(&syn).unwrap(), &syn);
        assert!(recovery.senders.is_empty());
    }
}
