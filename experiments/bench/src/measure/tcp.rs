//! Goodput of TCP streams, measured with iperf3 and with the hosts' offloads.

use crate::quantity::{Figures, Quantity};
use crate::subject::World;
use anyhow::{Context, Result, bail};
use axon_demo::iperf::{PORT, client_error, parse_server};
use axon_demo::machine::congestion_control;
use axon_demo::process::Process;
use std::time::Duration;

/// Time excluded at the beginning, in seconds.
const WARM_UP: f64 = 0.2;
/// Additional time for iperf3 beyond its test.
const SLACK: Duration = Duration::from_secs(20);

/// Measures one stream, and then four.
pub(crate) fn both(world: &World<'_>, seconds: u32) -> Result<Figures> {
    let mut figures = Figures::new();
    for (quantity, streams) in [(Quantity::TcpOneStream, 1), (Quantity::TcpFourStreams, 4)] {
        let run = Streams::start(world, [0, 1], 0, streams, seconds)?;
        figures.push((quantity, run.finish(world, WARM_UP, 0.0)? / 1e3));
    }
    Ok(figures)
}

/// Streams from one client to its own server.
pub struct Streams {
    server: Process,
    client: Process,
    seconds: u32,
}

impl Streams {
    /// Starts `count` streams from one host to another. Servers on the same host have different
    /// numbers.
    pub fn start(
        world: &World<'_>,
        [from, to]: [usize; 2],
        number: u16,
        count: u32,
        seconds: u32,
    ) -> Result<Streams> {
        let port = PORT + number;
        let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let server = words(format!("iperf3 -s -1 -J -i 0.1 -p {port}"));
        let server = world.start(to, &server, &format!("iperf3-server-{number}"))?;
        world.wait_listening(to, 't', port)?;
        let client = words(format!(
            "iperf3 -c {} -p {port} -t {seconds} -P {count} -J --connect-timeout 3000 -C {}",
            world.address(to),
            congestion_control()
        ));
        let client = world.start(from, &client, &format!("iperf3-client-{number}"))?;
        Ok(Streams { server, client, seconds })
    }

    /// Waits for the streams to end. Returns the goodput of all streams in Mb/s, excluding
    /// `warm_up` and `cool_down` seconds.
    pub(crate) fn finish(self, world: &World<'_>, warm_up: f64, cool_down: f64) -> Result<f64> {
        let limit = Duration::from_secs(u64::from(self.seconds)) + SLACK;
        let (status, output) = self.client.finish(limit, world.stop())?;
        if !status.success() {
            bail!("iperf3: {}", client_error(&output).unwrap_or_else(|| status.to_string()));
        }
        let output = self.server.finish(SLACK, world.stop())?.1;
        let end = f64::from(self.seconds) - cool_down;
        Ok(parse_server(&output, warm_up, end).context("the TCP streams")?.mbps)
    }
}
