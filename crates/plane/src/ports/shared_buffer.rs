//! Shared memory of a switch: limits and usage of its buffers.
//!
//! The terms are those of switch operators. Frames of one ingress port and one priority form a
//! *priority group*. It has some `reserved` memory, may use a share of the free part of its *pool*
//! (`shared`), and, where it is lossless, has `headroom` for frames in flight after XOFF was sent.
//! Frames queued for one port in one traffic class form a *queue*; the shares of queues bound lossy
//! frames only.
//!
//! A frame uses the reserved memory of its group if it fits there, and the pool otherwise, if that
//! leaves the group within its share. A lossless frame that fits neither uses the headroom, and its
//! sender is paused (`xoff`); a lossy one is dropped. Leaving frames release the headroom first,
//! then the pool, then the reserved memory. A paused sender is resumed (`xon`) once its headroom is
//! empty and the group is as far below its share as configured.
//!
//! A dynamic share is `free * 2^shift`, where `free` is the unused part of the pool (A. K.
//! Choudhury and E. L. Hahne, *Dynamic queue length thresholds*, 1998; `alpha` of today's switches
//! is `2^shift`). With one group alone at alpha 1 half of the pool stays free for other groups. A
//! static share is a number of bytes.

use alloc::vec::Vec;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, PortNo};

/// Limit of one user's share of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The free part of the pool, times `2^shift`; from 1/128 (-7) to 8 (3) in practice.
    Dynamic {
        /// Binary logarithm of alpha.
        shift: i8,
    },
    /// A fixed number of bytes.
    Static(Bytes),
}

impl Share {
    /// Returns the limit of the user's bytes in the pool when `free` bytes of it are unused.
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

/// Limits of a priority group: the frames of one priority from one ingress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityGroupLimits {
    /// Reserved bytes, which no other group can use.
    pub reserved: Bytes,
    /// Share of the pool.
    pub share: Share,
    /// Bytes for frames in flight after XOFF was sent; unused for a lossy priority.
    pub headroom: Bytes,
    /// Distance in bytes below its share at which XON is sent.
    pub xon_offset: Bytes,
}

/// Limits of a queue: the frames for one port in one traffic class. Bounds lossy frames only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Reserved bytes, always available.
    pub reserved: Bytes,
    /// Share of the lossy pool beyond the reserved bytes.
    pub share: Share,
}

/// Configuration of the shared memory of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Lossless priorities.
    pub lossless: PrioritySet,
    /// Bytes of the pool of lossless priority groups.
    pub lossless_pool: Bytes,
    /// Bytes of the pool of lossy priority groups.
    pub lossy_pool: Bytes,
    /// Limits of each priority group, by ingress port and priority.
    pub groups: Vec<[PriorityGroupLimits; PRIORITIES]>,
    /// Limits of queues by traffic class, the same at every port.
    pub queues: [QueueLimits; PRIORITIES],
}

impl MemoryConfig {
    /// Returns the bytes that can be in use at once: reserved memory, pools and headroom.
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

/// Memory accounts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The ingress port; frames of the control plane use no memory.
    pub ingress: PortNo,
    /// The priority.
    pub priority: Priority,
    /// The egress port.
    pub egress: PortNo,
    /// The traffic class at the egress port.
    pub class: TrafficClass,
}

/// Reasons for which there is no room for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// A lossless frame, and the headroom of its group is full: its sender was not paused in time,
    /// or too little was configured.
    Headroom,
    /// A lossy frame, and the share of its group is used up.
    Group,
    /// A lossy frame, and the share of its queue is used up.
    Queue,
}

/// Signal to the sender of a priority group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// None: the state has not changed.
    None,
    /// XOFF: pause the priorities of the group.
    Xoff,
    /// XON: resume the priorities of the group.
    Xon,
}

/// Memory usage of a priority group, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Reserved memory in use.
    pub reserved: u64,
    /// Shared memory in use.
    pub shared: u64,
    /// Headroom in use.
    pub headroom: u64,
}

impl Usage {
    /// Returns the total in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.reserved + self.shared + self.headroom
    }
}

/// State of a priority group: current and peak usage, and whether its sender is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityGroup {
    /// Current usage.
    pub usage: Usage,
    /// Peak usage of each kind since the start.
    pub peak: Usage,
    /// True if the sender is paused: XOFF was signalled, and no XON since.
    pub xoff: bool,
}

/// The shared memory of a switch, and its usage.
#[derive(Clone, Debug)]
pub struct Memory {
    config: MemoryConfig,
    groups: Vec<[PriorityGroup; PRIORITIES]>,
    /// Queued bytes by egress port and class.
    queues: Vec<[u64; PRIORITIES]>,
    /// Bytes in use of the lossy pool and of the lossless one.
    pools: [u64; 2],
    pool_peaks: [u64; 2],
}

impl Memory {
    /// Returns a memory without usage.
    pub(crate) fn new(config: MemoryConfig) -> Memory {
        let ports = config.groups.len();
        Memory {
            groups: alloc::vec![[PriorityGroup::default(); PRIORITIES]; ports],
            queues: alloc::vec![[0; PRIORITIES]; ports],
            config,
            pools: [0; 2],
            pool_peaks: [0; 2],
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &MemoryConfig {
        &self.config
    }

    /// Takes room for a frame of `bytes` bytes. Ports that do not exist have none.
    ///
    /// # Errors
    /// The reason for which there is no room; then nothing has changed.
    pub(crate) fn admit(&mut self, owner: Owner, bytes: u64) -> Result<Signal, NoRoom> {
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

    /// Releases the room of an admitted frame.
    pub(crate) fn release(&mut self, owner: Owner, bytes: u64) -> Signal {
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

    /// Sets the limits of a priority group; memory in use is unchanged. Has no effect if there is
    /// no such port.
    pub(crate) fn set_group(
        &mut self,
        ingress: PortNo,
        priority: Priority,
        limits: PriorityGroupLimits,
    ) {
        if let Some(port) = self.config.groups.get_mut(ingress.index()) {
            port[priority.index()] = limits;
        }
    }

    /// Moves an admitted frame to another class, that of `owner`. No limit is checked.
    pub(crate) fn reclass(&mut self, owner: Owner, before: TrafficClass, bytes: u64) {
        if let Some(queue) = self.queue_mut(Owner { class: before, ..owner }) {
            *queue -= bytes;
        }
        if let Some(queue) = self.queue_mut(owner) {
            *queue += bytes;
        }
    }

    /// Returns the state of a priority group; `None` if there is no such port.
    pub fn group(&self, ingress: PortNo, priority: Priority) -> Option<&PriorityGroup> {
        self.groups.get(ingress.index()).map(|port| &port[priority.index()])
    }

    /// Returns the bytes queued for `egress` in `class`.
    pub fn queued(&self, egress: PortNo, class: TrafficClass) -> Bytes {
        Bytes(self.queues.get(egress.index()).map_or(0, |port| port[class.index()]))
    }

    /// Returns the current and the peak usage of the lossless (or the lossy) pool.
    pub(crate) fn pool(&self, lossless: bool) -> (Bytes, Bytes) {
        let pool = usize::from(lossless);
        (Bytes(self.pools[pool]), Bytes(self.pool_peaks[pool]))
    }

    /// Returns the total usage.
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
        // No XON before the headroom is empty and 2,000 bytes of the share are free.
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
        // Of 10,000: x <= 10,000 - x, so 5,000 beside the 1,000 reserved; the queue's reserved
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
        /// For any sequence of frames: all accounts balance, no limit is exceeded, and every XOFF
        /// is followed by an XON once all frames have left.
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
