//! Event simulation of the forwarder, which is independent of the formula.
//!
//! It has a sender on the link, a NIC with its memory, firmware, rings and payload buffers, an I/O
//! bus and a host. It is separate from the simulator (`crates/sim`), because it has no frames,
//! ports or switches, and because the memory shares its cycles continuously, whereas the simulator
//! has links that serve one frame after another. As in the simulator, events have one total order,
//! `(time, source, sequence)`, time is an integer (picoseconds), and a run depends only on its
//! plan.
//!
//! # Operation of the NIC
//!
//! **Memory**: there are two cycles for each cycle of the processor. Engines are served by
//! priority: external DMA (the bus), network receive, network send, processor. An engine takes at
//! most every other cycle, and no more than its bus or link delivers. The processor gets at most
//! every other cycle while a DMA runs, and none while both network engines run (003 §2.2). When it
//! is alone, it has all cycles in a LANai 4, but still only every other one in a LANai 7 or 9.
//!
//! **Firmware**: it works in rounds. A round starts the receipt of a packet, if one waits on the
//! link and there is a ring entry and a buffer for each of its pages, and the transmission of a
//! packet that is ready. For each of the two, it executes half of the 550 instructions per page. It
//! ends when all of this is done. The external DMA runs on its own. The rounds are our
//! interpretation of the pipeline in the paper's figures 2 and 3. If the firmware never waited for
//! its network engines, the processor of a LANai 7 or 9 would be far from being a bottleneck.
//!
//! **Bus**: it serves packets in order of arrival. A packet of n bytes takes ceil(n / 4096)
//! transfers, each with a set-up during which the bus moves nothing and the memory is free.
//!
//! **Host**: it is a single server that serves packets in order of arrival.
//!
//! **Back-pressure**: without a ring entry or buffers, a packet waits on the link. A host that
//! finds the send ring full waits, and returns no receive ring entry in the meantime. So a payload
//! that has not been sent is never overwritten (003 §4), and every payload that is cached is found.

mod buffers;
mod bus;
mod events;
mod host;
mod memory;
mod plan;
mod rounds;
mod world;

pub use plan::{Arrivals, Plan, PlanError, Report};
pub use world::run;
