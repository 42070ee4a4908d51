//! The shared memory of a switch: who may use how much of it.
//!
//! The names are those of switch operators. What came in by one port with one priority is a
//! *priority group*. It has some memory of its own (`reserved`), may use a share of what is free
//! in its *pool* (`shared`), and, where it is lossless, has `headroom` for what still comes
//! after XOFF was sent. A *queue* is what waits for one port in one traffic class;
//! the shares of queues bound lossy frames only.
//!
//! In plain English: a frame is put into the reserved memory of its group if it fits there, and
//! into the pool otherwise, if that leaves the group within its share. A lossless frame that
//! fits neither is put into the headroom, and its sender is paused (`xoff`); a lossy one
//! ends. What leaves is taken from the headroom first, then from the pool, then from what is
//! reserved. A paused sender is resumed (`xon`) once its headroom is empty and
//! the group is as far below its share as configured.
//!
//! A dynamic share is `free * 2^shift`, where `free` is what nobody uses of the pool (A. K.
//! Choudhury and E. L. Hahne, *Dynamic queue length thresholds*, 1998; `alpha` of today's
//! switches is `2^shift`). With one group alone at alpha 1 half of the pool stays free for
//! whoever comes next. A static share is a number of bytes.

use alloc::vec::Vec;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, PortNo};

/// How much of a pool one user may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// What is free of the pool, times `2^shift`; from 1/128 (-7) to 8 (3) in practice.
    Dynamic {
        /// Alpha is 2 to this power.
        shift: i8,
    },
    /// So many bytes, whatever is free.
    Static(Bytes),
}

impl Share {
    /// The most that the user may have in the pool when `free` bytes of it are not used.
    fn limit(self, free: u64) -> u64 {
        match self {
            Share::Dynamic { shift } if shift < 0 => {
                free.checked_shr(u32::from(shift.unsigned_abs())).unwrap_or(0)
            }
            Share::Dynamic { shift } => free.saturating_mul(1 << shift.min(32)),
            Share::Static(bytes) => bytes.0,
        }
    }
}

/// What frames of one priority that came in by one port may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityGroupLimits {
    /// Bytes of its own, which no other group can use.
    pub reserved: Bytes,
    /// The share that it may have of its pool.
    pub share: Share,
    /// Bytes for what comes after XOFF was sent; of no use to a lossy priority.
    pub headroom: Bytes,
    /// So many bytes below its share it must be before XON is sent.
    pub xon_offset: Bytes,
}

/// What may wait for one port in one traffic class. Bounds lossy frames only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// It may always hold so much.
    pub reserved: Bytes,
    /// Beyond that, of the lossy pool.
    pub share: Share,
}

/// The memory of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Priorities whose frames are never to be lost.
    pub lossless: PrioritySet,
    /// Bytes that lossless priority groups share.
    pub lossless_pool: Bytes,
    /// Bytes that lossy priority groups share.
    pub lossy_pool: Bytes,
    /// The limits of each priority group, by ingress port and priority.
    pub groups: Vec<[PriorityGroupLimits; PRIORITIES]>,
    /// By traffic class, the same at every port.
    pub queues: [QueueLimits; PRIORITIES],
}

impl MemoryConfig {
    /// All that can be in use at once: what is reserved, the pools, the headroom.
    pub fn bytes(&self) -> Bytes {
        let pools = self.lossless_pool.0.saturating_add(self.lossy_pool.0);
        let own = self.groups.iter().flat_map(|port| Priority::ALL.iter().zip(port));
        let own = own.map(|(priority, limits)| {
            let headroom = if self.lossless.contains(*priority) { limits.headroom.0 } else { 0 };
            limits.reserved.0.saturating_add(headroom)
        });
        Bytes(own.fold(pools, u64::saturating_add))
    }
}

/// Who a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The port it came in by; the control plane's frames use no memory.
    pub ingress: PortNo,
    /// Its priority.
    pub priority: Priority,
    /// The port it waits for.
    pub egress: PortNo,
    /// The traffic class that it waits in.
    pub class: TrafficClass,
}

/// Why there is no room for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// A lossless frame, and the headroom of its group is full: its sender has not paused in
    /// time, or too little was configured.
    Headroom,
    /// A lossy frame, and its group has used up its share.
    Group,
    /// A lossy frame, and its queue has used up its share.
    Queue,
}

/// What is to be sent to the sender of a priority group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Nothing: its state has not changed.
    None,
    /// XOFF: the sender is to pause the priorities of the group.
    Xoff,
    /// XON: the sender may send them again.
    Xon,
}

/// What is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of its own memory.
    pub reserved: u64,
    /// Of the pool.
    pub shared: u64,
    /// Of the headroom.
    pub headroom: u64,
}

impl Usage {
    /// All of it, in bytes.
    pub const fn bytes(&self) -> u64 {
        self.reserved + self.shared + self.headroom
    }
}

/// What a priority group uses, the most it has used, and whether its sender is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityGroup {
    /// Now.
    pub usage: Usage,
    /// The most of each since the start.
    pub peak: Usage,
    /// Its sender is paused: XOFF was signalled, and no XON since.
    pub xoff: bool,
}

/// The memory of a switch, and what is in use of it.
#[derive(Clone, Debug)]
pub struct Memory {
    config: MemoryConfig,
    groups: Vec<[PriorityGroup; PRIORITIES]>,
    /// Bytes that wait, by egress port and class.
    queues: Vec<[u64; PRIORITIES]>,
    /// In use, of the lossy pool and of the lossless one.
    pools: [u64; 2],
    pool_peaks: [u64; 2],
}

impl Memory {
    /// Nothing is in use.
    pub fn new(config: MemoryConfig) -> Memory {
        let ports = config.groups.len();
        Memory {
            groups: alloc::vec![[PriorityGroup::default(); PRIORITIES]; ports],
            queues: alloc::vec![[0; PRIORITIES]; ports],
            config,
            pools: [0; 2],
            pool_peaks: [0; 2],
        }
    }

    /// The configuration in force.
    pub fn config(&self) -> &MemoryConfig {
        &self.config
    }

    /// Takes room for a frame of `bytes` bytes. Ports that do not exist have none.
    ///
    /// # Errors
    /// Why there is no room; then nothing has changed.
    pub fn admit(&mut self, owner: Owner, bytes: u64) -> Result<Signal, NoRoom> {
        let lossless = self.config.lossless.contains(owner.priority);
        let limits = self.limits(owner).ok_or(NoRoom::Group)?;
        let pool_bytes = self.pool_bytes(lossless);
        let free = pool_bytes - self.pools[usize::from(lossless)];
        if !lossless && !self.queue_has_room(owner, bytes, free) {
            return Err(NoRoom::Queue);
        }
        let group = &mut self.groups[owner.ingress.index()][owner.priority.index()];
        let mut signal = Signal::None;
        if group.usage.reserved + bytes <= limits.reserved.0 {
            group.usage.reserved += bytes;
        } else if group.usage.headroom == 0
            && bytes <= free
            && group.usage.shared + bytes <= limits.share.limit(free)
        {
            group.usage.shared += bytes;
            self.pools[usize::from(lossless)] += bytes;
        } else if lossless {
            if group.usage.headroom + bytes > limits.headroom.0 {
                return Err(NoRoom::Headroom);
            }
            group.usage.headroom += bytes;
            if !core::mem::replace(&mut group.xoff, true) {
                signal = Signal::Xoff;
            }
        } else {
            return Err(NoRoom::Group);
        }
        group.peak.reserved = group.peak.reserved.max(group.usage.reserved);
        group.peak.shared = group.peak.shared.max(group.usage.shared);
        group.peak.headroom = group.peak.headroom.max(group.usage.headroom);
        let pool = usize::from(lossless);
        self.pool_peaks[pool] = self.pool_peaks[pool].max(self.pools[pool]);
        if let Some(queue) = self.queue_mut(owner) {
            *queue += bytes;
        }
        Ok(signal)
    }

    /// Gives back the room of a frame that was admitted.
    pub fn release(&mut self, owner: Owner, bytes: u64) -> Signal {
        let lossless = self.config.lossless.contains(owner.priority);
        let Some(limits) = self.limits(owner) else {
            return Signal::None;
        };
        if let Some(queue) = self.queue_mut(owner) {
            *queue -= bytes;
        }
        let group = &mut self.groups[owner.ingress.index()][owner.priority.index()];
        let headroom = bytes.min(group.usage.headroom);
        let shared = (bytes - headroom).min(group.usage.shared);
        group.usage.headroom -= headroom;
        group.usage.shared -= shared;
        group.usage.reserved -= bytes - headroom - shared;
        self.pools[usize::from(lossless)] -= shared;
        if !group.xoff || group.usage.headroom > 0 {
            return Signal::None;
        }
        let free = self.pool_bytes(lossless) - self.pools[usize::from(lossless)];
        let group = &mut self.groups[owner.ingress.index()][owner.priority.index()];
        let low = group.usage.shared + limits.xon_offset.0 <= limits.share.limit(free);
        if low || group.usage.shared == 0 {
            group.xoff = false;
            return Signal::Xon;
        }
        Signal::None
    }

    /// Sets the limits of a priority group; what it holds stays where it is. Nothing happens if
    /// there is no such port.
    pub fn set_group(&mut self, ingress: PortNo, priority: Priority, limits: PriorityGroupLimits) {
        if let Some(port) = self.config.groups.get_mut(ingress.index()) {
            port[priority.index()] = limits;
        }
    }

    /// A frame that was admitted waits in another class from now on, in that of `owner`. It is
    /// where it is, so no limit is asked.
    pub fn reclass(&mut self, owner: Owner, before: TrafficClass, bytes: u64) {
        if let Some(queue) = self.queue_mut(Owner { class: before, ..owner }) {
            *queue -= bytes;
        }
        if let Some(queue) = self.queue_mut(owner) {
            *queue += bytes;
        }
    }

    /// The state of a priority group; `None` where there is no such port.
    pub fn group(&self, ingress: PortNo, priority: Priority) -> Option<&PriorityGroup> {
        self.groups.get(ingress.index()).map(|port| &port[priority.index()])
    }

    /// Bytes that wait for `egress` in `class`.
    pub fn queued(&self, egress: PortNo, class: TrafficClass) -> Bytes {
        Bytes(self.queues.get(egress.index()).map_or(0, |port| port[class.index()]))
    }

    /// In use of the lossless (or the lossy) pool, and the most that was since the start.
    pub fn pool(&self, lossless: bool) -> (Bytes, Bytes) {
        let pool = usize::from(lossless);
        (Bytes(self.pools[pool]), Bytes(self.pool_peaks[pool]))
    }

    /// All that is in use.
    pub fn used(&self) -> Bytes {
        Bytes(self.groups.iter().flatten().map(|group| group.usage.bytes()).sum())
    }

    fn limits(&self, owner: Owner) -> Option<PriorityGroupLimits> {
        let port = self.config.groups.get(owner.ingress.index())?;
        Some(port[owner.priority.index()])
    }

    fn pool_bytes(&self, lossless: bool) -> u64 {
        if lossless { self.config.lossless_pool.0 } else { self.config.lossy_pool.0 }
    }

    fn queue_mut(&mut self, owner: Owner) -> Option<&mut u64> {
        Some(&mut self.queues.get_mut(owner.egress.index())?[owner.class.index()])
    }

    fn queue_has_room(&self, owner: Owner, bytes: u64, free: u64) -> bool {
        let limits = self.config.queues[owner.class.index()];
        let queued = self.queued(owner.egress, owner.class).0 + bytes;
        let beyond = queued.saturating_sub(limits.reserved.0);
        beyond == 0 || beyond <= limits.share.limit(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOSSLESS: u8 = 3;
    const LOSSY: u8 = 0;

    fn priority(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    fn owner(ingress: u16, number: u8, egress: u16) -> Owner {
        let class = TrafficClass::new(number).unwrap();
        let (ingress, egress) = (PortNo(ingress), PortNo(egress));
        Owner { ingress, priority: priority(number), egress, class }
    }

    fn config(share: Share) -> MemoryConfig {
        let limits = PriorityGroupLimits {
            reserved: Bytes(1_000),
            share,
            headroom: Bytes(5_000),
            xon_offset: Bytes(2_000),
        };
        let queue = QueueLimits { reserved: Bytes(2_000), share: Share::Dynamic { shift: 0 } };
        MemoryConfig {
            lossless: PrioritySet::only(priority(LOSSLESS)),
            lossless_pool: Bytes(20_000),
            lossy_pool: Bytes(10_000),
            groups: alloc::vec![[limits; PRIORITIES]; 4],
            queues: [queue; PRIORITIES],
        }
    }

    #[test]
    fn a_lossless_group_fills_its_own_then_its_share_then_its_headroom() {
        let mut memory = Memory::new(config(Share::Static(Bytes(4_000))));
        let flow = owner(1, LOSSLESS, 2);
        for _ in 0..5 {
            assert_eq!(memory.admit(flow, 1_000), Ok(Signal::None));
        }
        assert_eq!(memory.admit(flow, 1_000), Ok(Signal::Xoff));
        for _ in 0..4 {
            assert_eq!(memory.admit(flow, 1_000), Ok(Signal::None), "XOFF was signalled once");
        }
        assert_eq!(memory.admit(flow, 1_000), Err(NoRoom::Headroom));
        let group = memory.group(PortNo(1), priority(LOSSLESS)).unwrap();
        assert_eq!(group.usage, Usage { reserved: 1_000, shared: 4_000, headroom: 5_000 });
        assert_eq!(memory.used(), Bytes(10_000));
        assert_eq!(memory.queued(PortNo(2), flow.class), Bytes(10_000));
        // Nothing may go on before the headroom is empty and 2,000 of the share are free.
        let mut signals = Vec::new();
        (0..10).for_each(|_| signals.push(memory.release(flow, 1_000)));
        assert_eq!(signals.iter().position(|&signal| signal == Signal::Xon), Some(6));
        assert_eq!(signals.iter().filter(|&&signal| signal != Signal::None).count(), 1);
        assert_eq!((memory.used(), memory.pool(true)), (Bytes(0), (Bytes(0), Bytes(4_000))));
    }

    #[test]
    fn alpha_one_leaves_half_of_the_pool_to_the_next() {
        let mut memory = Memory::new(config(Share::Dynamic { shift: 0 }));
        let fill = |memory: &mut Memory, ingress| {
            let mut bytes = 0;
            while memory.admit(owner(ingress, LOSSY, 3), 100).is_ok() {
                bytes += 100;
            }
            bytes
        };
        // Of 10,000: x <= 10,000 - x, so 5,000 beside the 1,000 of its own; the queue's own
        // 2,000 and its share of the same pool are no tighter.
        assert_eq!(fill(&mut memory, 0), 6_000);
        let more = fill(&mut memory, 1);
        assert!((1_000..=3_600).contains(&more), "{more}");
    }

    #[test]
    fn a_lossy_queue_is_bounded_whoever_fills_it_and_a_lossless_one_is_not() {
        let mut config = config(Share::Static(Bytes(20_000)));
        config.queues[usize::from(LOSSY)].share = Share::Static(Bytes(500));
        config.queues[usize::from(LOSSLESS)].share = Share::Static(Bytes(0));
        let mut memory = Memory::new(config);
        for ingress in 0..2 {
            assert_eq!(memory.admit(owner(ingress, LOSSY, 3), 1_000), Ok(Signal::None));
        }
        assert_eq!(memory.admit(owner(2, LOSSY, 3), 501), Err(NoRoom::Queue));
        assert_eq!(memory.admit(owner(2, LOSSY, 3), 500), Ok(Signal::None));
        for ingress in 0..3 {
            assert!(memory.admit(owner(ingress, LOSSLESS, 3), 5_000).is_ok());
        }
    }

    #[test]
    fn ports_that_do_not_exist_have_no_memory() {
        let mut memory = Memory::new(config(Share::Static(Bytes(4_000))));
        assert_eq!(memory.admit(owner(9, LOSSLESS, 1), 60), Err(NoRoom::Group));
        assert_eq!(memory.admit(owner(PortNo::CONTROL.0, LOSSY, 1), 60), Err(NoRoom::Group));
        assert_eq!(memory.release(owner(9, LOSSLESS, 1), 60), Signal::None);
        assert_eq!(memory.config().bytes(), Bytes(30_000 + 4 * (8 * 1_000 + 5_000)));
    }

    proptest! {
        /// Whatever comes and goes, no account goes wrong, no limit is passed, every stop is
        /// followed by a go once all is gone.
        #[test]
        fn accounts_balance(
            frames in prop::collection::vec(
                (0..4u16, prop::bool::ANY, 0..4u16, 60..1_600u64, 0..3u8), 1..400,
            ),
            shift in -7..4i8,
        ) {
            let mut memory = Memory::new(config(Share::Dynamic { shift }));
            let mut inside: Vec<(Owner, u64)> = Vec::new();
            let mut xoff = [false; 4];
            let mut signalled = |owner: Owner, signal| match signal {
                Signal::None => {}
                Signal::Xoff => {
                    assert!(!core::mem::replace(&mut xoff[owner.ingress.index()], true));
                }
                Signal::Xon => assert!(core::mem::replace(&mut xoff[owner.ingress.index()], false)),
            };
            for (ingress, lossless, egress, bytes, leave) in frames {
                let owner = owner(ingress, if lossless { LOSSLESS } else { LOSSY }, egress);
                if let Ok(signal) = memory.admit(owner, bytes) {
                    signalled(owner, signal);
                    inside.push((owner, bytes));
                }
                for _ in 0..leave.min(inside.len() as u8) {
                    let (owner, bytes) = inside.remove(0);
                    signalled(owner, memory.release(owner, bytes));
                }
                let bytes: u64 = inside.iter().map(|&(_, bytes)| bytes).sum();
                prop_assert_eq!(memory.used().0, bytes);
                prop_assert!(memory.pool(true).0.0 <= 20_000 && memory.pool(false).0.0 <= 10_000);
                prop_assert!(memory.used().0 <= memory.config().bytes().0);
            }
            for (owner, bytes) in inside.drain(..) {
                signalled(owner, memory.release(owner, bytes));
            }
            prop_assert_eq!(memory.used(), Bytes(0));
            prop_assert_eq!(xoff, [false; 4]);
        }
    }
}
