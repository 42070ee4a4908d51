//! iSCSI of paper 002, chapters 4 and 5: the open initiator and target of its laboratory, with the
//! disk in memory.
//!
//! The paper gives neither the negotiated parameters nor the CPU cost. The parameters are RFC
//! 7143's defaults. The cost is derived from its hosts: one sends 835 MB/s at most (figure 5-2),
//! which are 9.8 us for a PDU of 8 KiB.

use anyhow::{Context as _, Result};
use axon_sim::World;
use axon_sim::apps::{AppId, InitiatorPlan, IscsiLimits, Plan, Processor, TargetPlan, TcpOptions};
use axon_wire::{Rate, Span};

/// Bytes of a command: `dd` with `bs=1048576` (§4.2).
pub(crate) const LENGTH: u32 = 1 << 20;
/// Cost of a PDU at either end: with 8 KiB of data, 819 MB/s.
const PER_PDU: Span = Span::from_micros(10);

/// Commands from one host to another.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Port of the target.
    pub port: u16,
    /// True if the commands are reads.
    pub is_read: bool,
    /// TCP window in bytes.
    pub window: usize,
    /// Number of outstanding commands.
    pub depth: u32,
    /// Number of commands; unlimited if `None`.
    pub count: Option<u64>,
    /// Rate at which both ends copy the data; no time if `None`.
    pub copy: Option<Rate>,
}

/// Starts an initiator at the first host and a target at the second.
///
/// # Errors
/// A host has no power or no address.
pub fn start(world: &mut World, (from, to): (usize, usize), load: Load) -> Result<(AppId, AppId)> {
    let Load { port, is_read, window, depth, count, copy } = load;
    let options = TcpOptions { buffer_bytes: window, ack_delay: None, ..TcpOptions::default() };
    let (limits, processor) = (IscsiLimits::default(), Processor { per_pdu: PER_PDU, copy });
    let serve = TargetPlan { port, options, limits, processor };
    let address = world.address(to).context("an address")?;
    let target = world
        .with_host(to, |host, now| host.start(Plan::IscsiTarget(serve), now))
        .context("power")?;
    let plan = InitiatorPlan {
        target: address,
        port,
        options,
        limits,
        processor,
        is_read,
        length: LENGTH,
        depth,
        count,
    };
    let initiator = world.with_host(from, |host, now| host.start(Plan::IscsiInitiator(plan), now));
    Ok((initiator.context("power")?, target))
}
