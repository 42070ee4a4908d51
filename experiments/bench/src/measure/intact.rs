//! Data integrity over TCP with IPv6, and in UDP super-packets.

use crate::quantity::{Figures, Quantity};
use crate::subject::World;
use crate::traffic::data::{self, Stream};
use crate::traffic::datagrams;
use anyhow::{Context, Result};
use std::time::Duration;

/// Number of bytes in the TCP stream for each second of a measurement.
const BYTES_PER_SECOND: u64 = 64 << 20;
/// Number of UDP super-packets for each second of a measurement.
const PACKETS_PER_SECOND: u64 = 100;
/// Time limit for either test.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the test over TCP with IPv6, and the test with UDP super-packets.
pub(crate) fn both(world: &World<'_>, seconds: u32) -> Result<Figures> {
    Ok(vec![
        (Quantity::IntactTcpIpv6, tcp_ipv6(world, BYTES_PER_SECOND * u64::from(seconds))?),
        (Quantity::IntactUdpGso, udp_gso(world, PACKETS_PER_SECOND * u64::from(seconds))?),
    ])
}

fn tcp_ipv6(world: &World<'_>, bytes: u64) -> Result<f64> {
    world.add_ipv6([0, 1])?;
    let receiver = world.start_own(1, "data-receive", "data-receive")?;
    world.wait_listening(1, 't', data::PORT)?;
    let sender =
        world.start_own(0, &format!("data-send {} {bytes}", world.ipv6(1)), "data-send")?;
    let sent = sender.succeed(LIMIT, world.stop()).context("TCP over IPv6")?;
    let received = receiver.succeed(LIMIT, world.stop()).context("TCP over IPv6")?;
    Ok(Stream::intact(data::parse(&sent)?, data::parse(&received)?))
}

fn udp_gso(world: &World<'_>, packets: u64) -> Result<f64> {
    let receiver =
        world.start_own(1, &format!("datagrams-receive {packets}"), "datagrams-receive")?;
    world.wait_listening(1, 'u', datagrams::PORT)?;
    let words = format!("datagrams-send {} {packets}", world.address(1));
    let sender = world.start_own(0, &words, "datagrams-send")?;
    sender.succeed(LIMIT, world.stop()).context("UDP super-packets")?;
    let received = receiver.succeed(LIMIT, world.stop()).context("UDP super-packets")?;
    datagrams::intact(&received, packets)
}
