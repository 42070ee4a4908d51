//! Address conflicts: addresses claimed by two hosts, and the schedule of queries about them. See
//! `addresses.rs` for the rules.
//!
//! The *holder* of an address is queried up to three times, 100 ms apart. If it is silent, the
//! *claimant* gets the address. If it answers, it keeps the address and the conflict stands. The
//! claimant's next claim makes the controller query the holder again, but no earlier than a second
//! after the last query. A claim within 100 ms of a query may be an answer to it and does not
//! count. After 10 s without a claim, the claimant is queried in the same way. If it is silent, the
//! conflict ends.
//!
//! The first query to a holder takes a token from the bucket of the claimant's port and one from
//! the bucket of the fabric. A claim is refused if there is no token, or if the port has too many
//! conflicts. So is a claim by a third host while the holder is being queried. An edge reports an
//! address of a host only once, so 10 s after a refusal the claimant's edge is asked to report it
//! again. If there are too many conflicts in total, a conflict of the port that has the most is
//! evicted.

use super::hosts::Place;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::bucket::{Bucket, Rate};
use axon_wire::{MacAddr, Span, Time};
use core::net::IpAddr;

/// Interval between queries.
pub(super) const ROUND: Span = Span::from_millis(100);
/// Number of unanswered queries before a host counts as silent.
const ROUNDS: u32 = 3;
/// Minimum interval between the queries to the holder that new claims cause.
const PAUSE: Span = Span::from_secs(1);
/// Time without a claim after which the claimant is queried.
const QUIET: Span = Span::from_secs(10);
/// Time after which the edge of a refused claimant is asked to report the claim again.
const RETRY: Span = Span::from_secs(10);
/// Maximum number of conflicts, and also of refused claims.
const CONFLICTS_MAX: usize = 256;
/// Maximum number of conflicts whose claimants are at one port.
const PER_PORT_MAX: usize = 64;
/// Rate of queries to holders that hosts at one port may cause. The burst covers a router that
/// takes over the same number of virtual addresses.
const OF_PORT: Rate = Rate { every: Span::from_millis(250), burst: 64 };
/// Rate of queries to holders in the whole fabric.
const OF_ALL: Rate = Rate { every: Span::from_millis(50), burst: 256 };

/// Phase of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The holder is being queried, with this number of queries in a row so far.
    AsksHolder(u32),
    /// The holder has answered. Other hosts may still answer the same query.
    Answered,
    /// The conflict stands. The next claim counts, or one has arrived (`claimed`) and is deferred.
    Stands { claimed: bool },
    /// The claimant is being queried, with this number of queries in a row so far.
    AsksClaimant(u32),
}

/// Address claimed by two hosts.
#[derive(Clone, Debug)]
struct Conflict {
    claimant: MacAddr,
    /// Port of the claimant.
    at: Place,
    phase: Phase,
    /// Time of the last query to the holder.
    asked: Time,
    /// Time of the next action.
    due: Time,
    /// True if the holder has answered since this claimant appeared.
    stood: bool,
}

/// All conflicts in the fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Conflicts {
    by_ip: BTreeMap<IpAddr, Conflict>,
    due: BTreeSet<(Time, IpAddr)>,
    /// Refused claims, with the times at which they are to be reported again.
    refused: BTreeSet<(Time, IpAddr, MacAddr, Place)>,
    ports: BTreeMap<Place, Bucket>,
    all: Bucket,
}

/// Result of claiming an address that another host holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The holder must be queried now.
    Ask,
    /// The holder has already been queried, or will be.
    Waits,
    /// Refused, because there are too many conflicts or queries, or because another host claimed
    /// the address first.
    Refused,
}

/// Action that is due for a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Query the holder of the address.
    AskHolder,
    /// The holder has not answered. Unless the conflict ends, the holder is queried again after a
    /// second.
    HolderSilent,
    /// Ask the claimant's edge to report its next claim.
    Watch,
    /// Query the claimant.
    AskClaimant,
    /// Ask the edge of a refused host to report its next claim.
    Listen(MacAddr),
}

impl Conflicts {
    /// Handles a claim by a host at a port for an address that another host holds.
    pub(super) fn claim(&mut self, now: Time, at: Place, ip: IpAddr, by: MacAddr) -> Claim {
        let claim = self.judge(now, at, ip, by);
        if claim == Claim::Refused {
            self.remember(now + RETRY, at, ip, by);
        }
        claim
    }

    fn remember(&mut self, due: Time, at: Place, ip: IpAddr, by: MacAddr) {
        let of_port = self.refused.iter().filter(|refused| refused.3 == at).count();
        let is_full = self.refused.len() >= CONFLICTS_MAX || of_port >= PER_PORT_MAX;
        let is_known = || self.refused.iter().any(|refused| (refused.1, refused.2) == (ip, by));
        if !is_full && !is_known() {
            self.refused.insert((due, ip, by, at));
        }
    }

    fn judge(&mut self, now: Time, at: Place, ip: IpAddr, by: MacAddr) -> Claim {
        let Some(conflict) = self.by_ip.get(&ip) else {
            return self.begin(now, at, ip, by);
        };
        let is_first = conflict.claimant == by;
        let rested = now >= conflict.asked + PAUSE;
        match conflict.phase {
            Phase::AsksHolder(_) | Phase::Answered if is_first => Claim::Waits,
            Phase::AsksHolder(_) | Phase::Answered => Claim::Refused,
            Phase::Stands { .. } | Phase::AsksClaimant(_) if !rested && !is_first => Claim::Refused,
            Phase::Stands { .. } | Phase::AsksClaimant(_) if !rested => {
                self.set(ip, Phase::Stands { claimed: true }, conflict.asked + PAUSE);
                Claim::Waits
            }
            Phase::Stands { .. } | Phase::AsksClaimant(_) => self.again(now, at, ip, by),
        }
    }

    fn begin(&mut self, now: Time, at: Place, ip: IpAddr, by: MacAddr) -> Claim {
        let of_port = self.count_at(at);
        if of_port >= PER_PORT_MAX || !self.has_room(of_port) || !self.take_token(now, at) {
            return Claim::Refused;
        }
        let due = now + ROUND;
        let phase = Phase::AsksHolder(1);
        let conflict = Conflict { claimant: by, at, phase, asked: now, due, stood: false };
        self.by_ip.insert(ip, conflict);
        self.due.insert((due, ip));
        Claim::Ask
    }

    /// Returns the number of conflicts whose claimant is at this port.
    fn count_at(&self, at: Place) -> usize {
        self.by_ip.values().filter(|conflict| conflict.at == at).count()
    }

    /// Returns whether there is room for one more conflict at a port that has `of_port` of them. If
    /// necessary, evicts a standing conflict of the port that has the most.
    fn has_room(&mut self, of_port: usize) -> bool {
        if self.by_ip.len() < CONFLICTS_MAX {
            return true;
        }
        let mut standing = BTreeMap::<Place, (usize, IpAddr)>::new();
        for (&ip, conflict) in &self.by_ip {
            if matches!(conflict.phase, Phase::Stands { .. } | Phase::AsksClaimant(_)) {
                standing.entry(conflict.at).or_insert((0, ip)).0 += 1;
            }
        }
        let most = standing.into_values().max().filter(|(count, _)| *count > of_port + 1);
        most.and_then(|(_, ip)| self.end(ip)).is_some()
    }

    /// Queries the holder again, if a token is available.
    fn again(&mut self, now: Time, at: Place, ip: IpAddr, by: MacAddr) -> Claim {
        let of = self.by_ip.get(&ip).map(|conflict| (conflict.claimant, conflict.at));
        let is_first = of.is_some_and(|(claimant, _)| claimant == by);
        let moves = of.is_some_and(|(_, before)| before != at);
        if moves && self.count_at(at) >= PER_PORT_MAX || !self.take_token(now, at) {
            if !is_first {
                return Claim::Refused;
            }
            self.set(ip, Phase::Stands { claimed: false }, now + QUIET);
            return Claim::Waits;
        }
        if let Some(conflict) = self.by_ip.get_mut(&ip) {
            (conflict.claimant, conflict.at, conflict.asked) = (by, at, now);
        }
        self.set(ip, Phase::AsksHolder(1), now + ROUND);
        Claim::Ask
    }

    /// Records that the holder of an address has used it. Returns whether this answers a query and
    /// so makes the conflict stand for the first time.
    pub(super) fn answered(&mut self, ip: IpAddr) -> bool {
        let Some(conflict) = self.by_ip.get_mut(&ip) else { return false };
        if !matches!(conflict.phase, Phase::AsksHolder(_)) {
            return false;
        }
        let is_news = !core::mem::replace(&mut conflict.stood, true);
        let due = conflict.asked + ROUND;
        self.set(ip, Phase::Answered, due);
        is_news
    }

    /// Returns the next address in conflict with an action due by `now`, and that action.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(IpAddr, Due)> {
        if let Some(&refused @ (due, ip, by, _)) = self.refused.first()
            && due <= now
        {
            self.refused.remove(&refused);
            return Some((ip, Due::Listen(by)));
        }
        loop {
            let &(due, ip) = self.due.first().filter(|(due, _)| *due <= now)?;
            let Some(conflict) = self.by_ip.get(&ip) else {
                self.due.remove(&(due, ip));
                continue;
            };
            let (at, by, asked) = (conflict.at, conflict.claimant, conflict.asked);
            match conflict.phase {
                Phase::AsksHolder(rounds) if rounds < ROUNDS => {
                    self.set(ip, Phase::AsksHolder(rounds + 1), now + ROUND);
                    if let Some(conflict) = self.by_ip.get_mut(&ip) {
                        conflict.asked = now;
                    }
                    return Some((ip, Due::AskHolder));
                }
                Phase::AsksHolder(_) => {
                    self.set(ip, Phase::Stands { claimed: true }, now + PAUSE);
                    return Some((ip, Due::HolderSilent));
                }
                Phase::Answered => {
                    self.set(ip, Phase::Stands { claimed: false }, asked + QUIET);
                    return Some((ip, Due::Watch));
                }
                Phase::Stands { claimed: true } => {
                    if self.again(now, at, ip, by) == Claim::Ask {
                        return Some((ip, Due::AskHolder));
                    }
                }
                Phase::Stands { claimed: false } => {
                    self.set(ip, Phase::AsksClaimant(1), now + ROUND);
                    return Some((ip, Due::AskClaimant));
                }
                Phase::AsksClaimant(rounds) if rounds < ROUNDS => {
                    self.set(ip, Phase::AsksClaimant(rounds + 1), now + ROUND);
                    return Some((ip, Due::AskClaimant));
                }
                Phase::AsksClaimant(_) => drop(self.end(ip)),
            }
        }
    }

    /// Returns when to call [`Conflicts::take_due`] next.
    pub(super) fn deadline(&self) -> Option<Time> {
        let refused = self.refused.first().map(|refused| refused.0);
        self.due.first().map(|&(due, _)| due).into_iter().chain(refused).min()
    }

    /// Ends the conflict about an address. Returns its claimant, if there was a conflict.
    pub(super) fn end(&mut self, ip: IpAddr) -> Option<MacAddr> {
        let conflict = self.by_ip.remove(&ip)?;
        self.due.remove(&(conflict.due, ip));
        Some(conflict.claimant)
    }

    /// Returns the host that claims another host's address.
    pub(super) fn claimant(&self, ip: IpAddr) -> Option<MacAddr> {
        self.by_ip.get(&ip).map(|conflict| conflict.claimant)
    }

    /// Returns the addresses that a host claims while others hold them.
    pub(super) fn claimed_by(&self, mac: MacAddr) -> Vec<IpAddr> {
        let of = self.by_ip.iter().filter(|(_, conflict)| conflict.claimant == mac);
        of.map(|(&ip, _)| ip).collect()
    }

    /// Returns all addresses in conflict.
    pub(super) fn all(&self) -> Vec<IpAddr> {
        self.by_ip.keys().copied().collect()
    }

    /// Returns the conflicts in which the holder has answered, each as the address and its
    /// claimant.
    pub(super) fn standing(&self) -> impl Iterator<Item = (IpAddr, MacAddr)> {
        let standing = self.by_ip.iter().filter(|(_, conflict)| conflict.stood);
        standing.map(|(&ip, conflict)| (ip, conflict.claimant))
    }

    fn set(&mut self, ip: IpAddr, phase: Phase, due: Time) {
        if let Some(conflict) = self.by_ip.get_mut(&ip) {
            self.due.remove(&(conflict.due, ip));
            self.due.insert((due, ip));
            (conflict.phase, conflict.due) = (phase, due);
        }
    }

    fn take_token(&mut self, now: Time, at: Place) -> bool {
        // Only few buckets are not full, because the rate of the fabric limits their number.
        if self.ports.len() > CONFLICTS_MAX {
            self.ports.retain(|_, bucket| !bucket.is_full(now));
        }
        let of_port = self.ports.entry(at).or_default();
        let has = of_port.has(now, OF_PORT) && self.all.has(now, OF_ALL);
        if has {
            of_port.take(now, OF_PORT);
            self.all.take(now, OF_ALL);
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::SwitchIndex;
    use super::*;
    use axon_wire::PortNo;
    use core::net::Ipv4Addr;

    const fn mac(host: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, host])
    }

    fn ip(number: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + number).into()
    }

    fn place(port: u16) -> Place {
        Place { switch: SwitchIndex(0), port: PortNo(port) }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Returns the actions due for address 1 until `end`, with their times in milliseconds.
    fn due(conflicts: &mut Conflicts, end: u64) -> Vec<(u64, Due)> {
        let mut all = Vec::new();
        while let Some(next) = conflicts.deadline().filter(|&next| next <= at(end)) {
            while let Some((of, due)) = conflicts.take_due(next) {
                assert_eq!(of, ip(1));
                all.push((next.since(Time::ZERO).as_millis(), due));
            }
        }
        all
    }

    #[test]
    fn a_refused_claim_is_heard_again_and_the_port_with_most_conflicts_makes_room() {
        let mut conflicts = Conflicts::default();
        let address = |n: u16| IpAddr::from([10, 9, (n >> 8) as u8, n as u8]);
        let place = |port| Place { switch: SwitchIndex(0), port: PortNo(port) };
        let host = |n| MacAddr([2, 0, 0, 0, 1, n]);
        for n in 0..CONFLICTS_MAX as u16 {
            let (at, by) = (place(n / 64), host((n / 64) as u8));
            assert_eq!(conflicts.claim(Time::ZERO, at, address(n), by), Claim::Ask);
            assert!(conflicts.answered(address(n)));
        }
        let mut now = Time::ZERO + ROUND;
        while conflicts.take_due(now).is_some() {}
        // One more conflict at a port with its full share, and one at a port without any. Tokens
        // are available.
        now += Span::from_secs(20);
        assert_eq!(conflicts.claim(now, place(0), address(900), host(0)), Claim::Refused);
        assert_eq!(conflicts.claim(now, place(9), address(901), host(9)), Claim::Ask);
        assert_eq!(conflicts.all().len(), CONFLICTS_MAX);
        let mut heard = Vec::new();
        let end = now + RETRY;
        while let Some((ip, due)) = conflicts.take_due(end) {
            heard.extend(matches!(due, Due::Listen(_)).then_some((ip, due)));
            assert!(conflicts.all().len() <= CONFLICTS_MAX);
        }
        assert_eq!(heard, [(address(900), Due::Listen(host(0)))]);
    }

    #[test]
    fn a_holder_is_silent_after_three_questions_and_not_before() {
        let mut conflicts = Conflicts::default();
        assert_eq!(conflicts.claim(at(0), place(1), ip(1), mac(2)), Claim::Ask);
        assert_eq!(conflicts.claim(at(50), place(1), ip(1), mac(2)), Claim::Waits);
        assert_eq!(conflicts.claim(at(50), place(3), ip(1), mac(3)), Claim::Refused, "the second");
        let expected = [(100, Due::AskHolder), (200, Due::AskHolder), (300, Due::HolderSilent)];
        assert_eq!(due(&mut conflicts, 1_000), expected);
        assert_eq!(conflicts.standing().count(), 0, "nobody has answered");
        assert_eq!(conflicts.end(ip(1)), Some(mac(2)));
        assert_eq!((conflicts.deadline(), conflicts.end(ip(1))), (Some(at(50) + RETRY), None));
        let expected = [(10_050, Due::Listen(mac(3)))];
        assert_eq!(due(&mut conflicts, 20_000), expected, "the second is heard again");
        assert_eq!(conflicts.deadline(), None);
    }

    #[test]
    fn a_conflict_stands_while_both_answer_and_the_holder_is_asked_once_a_second() {
        let mut conflicts = Conflicts::default();
        conflicts.claim(at(0), place(1), ip(1), mac(2));
        assert!(conflicts.answered(ip(1)), "that is news");
        assert!(!conflicts.answered(ip(1)));
        assert_eq!(conflicts.standing().collect::<Vec<_>>(), [(ip(1), mac(2))]);
        assert_eq!(conflicts.claim(at(60), place(1), ip(1), mac(2)), Claim::Waits);
        assert_eq!(due(&mut conflicts, 900), [(100, Due::Watch)], "what came before was no news");
        // Five claims a second for a while.
        let mut asked = Vec::new();
        for millis in (900..5_000).step_by(200) {
            let claim = conflicts.claim(at(millis), place(1), ip(1), mac(2));
            if claim == Claim::Ask {
                asked.push(millis);
            }
            assert_ne!(claim, Claim::Refused);
            let all = due(&mut conflicts, millis + 199);
            asked.extend(all.iter().filter(|(_, due)| *due == Due::AskHolder).map(|&(at, _)| at));
            assert!(!conflicts.answered(ip(1)), "no news");
        }
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] >= 1_000), "{asked:?}");
        assert_eq!(asked.len(), 5, "{asked:?}");
    }

    #[test]
    fn a_claimant_that_is_quiet_is_asked_and_the_conflict_ends_if_it_is_silent() {
        let mut conflicts = Conflicts::default();
        conflicts.claim(at(0), place(1), ip(1), mac(2));
        conflicts.answered(ip(1));
        let all = due(&mut conflicts, 10_050);
        assert_eq!(all, [(100, Due::Watch), (10_000, Due::AskClaimant)]);
        assert_eq!(conflicts.claim(at(10_060), place(1), ip(1), mac(2)), Claim::Ask);
        conflicts.answered(ip(1));
        let all = due(&mut conflicts, 60_000);
        let asked = [20_060, 20_160, 20_260].map(|at| (at, Due::AskClaimant));
        assert_eq!(all[1..], asked);
        assert!(conflicts.by_ip.is_empty() && conflicts.due.is_empty());
    }

    #[test]
    fn the_newest_claimant_of_a_conflict_that_stands_is_the_one_that_counts() {
        let mut conflicts = Conflicts::default();
        conflicts.claim(at(0), place(1), ip(1), mac(2));
        conflicts.answered(ip(1));
        due(&mut conflicts, 500);
        assert_eq!(conflicts.claim(at(500), place(3), ip(1), mac(3)), Claim::Refused);
        assert_eq!(conflicts.claim(at(1_000), place(3), ip(1), mac(3)), Claim::Ask);
        assert_eq!((conflicts.claimant(ip(1)), conflicts.standing().count()), (Some(mac(3)), 1));
        assert!(!conflicts.answered(ip(1)), "it stood already");
        assert_eq!(conflicts.claimed_by(mac(3)), [ip(1)]);
        assert!(conflicts.claimed_by(mac(2)).is_empty());
    }

    #[test]
    fn a_flood_of_claims_is_bounded_for_a_port_and_for_all() {
        let mut conflicts = Conflicts::default();
        let mut asked = 0;
        for millis in 0..10_000 {
            for number in 0..4 {
                let ip = ip(1 + (millis as u32 * 4 + number) % 5_000);
                let claim = conflicts.claim(at(millis), place(1), ip, mac(2));
                asked += u64::from(claim == Claim::Ask);
                conflicts.answered(ip);
            }
            while let Some((_, due)) = conflicts.take_due(at(millis)) {
                asked += u64::from(matches!(due, Due::AskHolder | Due::AskClaimant));
            }
        }
        assert_eq!(conflicts.by_ip.len(), PER_PORT_MAX);
        assert!(asked <= OF_PORT.burst + 40, "{asked} questions in 10 s");
        for port in 2..100 {
            for number in 0..64 {
                let ip = ip(10_000 + u32::from(port) * 64 + number);
                conflicts.claim(at(10_000), place(port), ip, mac(3));
            }
        }
        assert_eq!(conflicts.by_ip.len(), CONFLICTS_MAX);
        assert_eq!(conflicts.due.len(), CONFLICTS_MAX);
        // Conflicts end if their hosts no longer answer.
        while let Some(next) = conflicts.deadline() {
            while let Some((ip, due)) = conflicts.take_due(next) {
                if due == Due::HolderSilent {
                    conflicts.end(ip);
                }
            }
        }
        assert!(conflicts.by_ip.is_empty() && conflicts.ports.len() <= CONFLICTS_MAX + 1);
    }
}
