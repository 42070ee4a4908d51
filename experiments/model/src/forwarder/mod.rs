//! Event simulation of the forwarder, independent of the formula.
//!
//! It has a sender on the link, a NIC with its memory, firmware, rings and payload buffers, an I/O
//! bus and a host. It is separate from the simulator (`crates/sim`): it has no frames, ports or
//! switches, and the memory shares its cycles continuously, where the simulator has links that
//! serve one frame after the other. As there, events have one total order,
//! `(time, source, sequence)`, time is an integer (picoseconds), and a run depends on nothing but
//! its plan.
//!
//! # Operation of the NIC
//!
//! **Memory**: two cycles for each cycle of the processor. Engines are served by priority: external
//! DMA (the bus), network receive, network send, processor. An engine takes at most every other
//! cycle, and no more than its bus or link delivers. The processor gets at most every other cycle
//! beside a DMA, and none while both network engines run (003 §2.2); alone it has all cycles of a
//! LANai 4, and still every other one of a LANai 7 or 9.
//!
//! **Firmware** works in rounds. A round starts the receipt of a packet, if one waits on the link
//! and there is a ring entry and a buffer for each of its pages, and the transmission of a packet
//! that is ready. It executes half of its 550 instructions a page for each, and ends when all of
//! that is done. The external DMA runs on its own. The rounds are our interpretation of the
//! pipeline in the paper's figures 2 and 3: a firmware that never waited for its network engines
//! would leave the processor of a LANai 7 or 9 far from being a bottleneck.
//!
//! **Bus**: first come, first served. A packet of n bytes is ceil(n / 4096) transfers, each with a
//! set-up during which the bus moves nothing and the memory is free.
//!
//! **Host**: one server, first come, first served.
//!
//! **Back-pressure**: without a ring entry or buffers the packet waits on the link; a host that
//! finds the send ring full waits, and returns no receive ring entry meanwhile. So a payload that
//! has not been sent is never overwritten (003 §4), and every payload that is cached is found.

mod buffers;
mod bus;
mod events;
mod memory;
mod plan;
mod rounds;
mod world;

pub use plan::{Arrivals, Plan, PlanError, Report};
pub use world::run;
