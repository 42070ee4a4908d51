//! Four hosts with converged network adapters on two switches: testbed of paper 002, chapter 5
//! (figure 5-1), with its frame generator, blaster.
//!
//! The performance of the hosts' software is taken from the paper, since no processor is simulated:
//! the offered rate of blaster's threads, and the 538 MB/s that a host reads from its ring.
//! Everything in between is simulated.

use anyhow::{Context as _, Result, ensure};
use axon_fabric::model::Fabric;
use axon_node::Drop;
use axon_sim::apps::{AppId, Plan, UdpPlan};
use axon_sim::{Host, World};
use axon_wire::priority::Priority;
use axon_wire::{Rate, Span, Time};
use std::path::Path;

/// Fabric file, which also runs by itself: `axon sim experiments/papers/src/hagen/cna.yaml`.
const FILE: &str = include_str!("cna.yaml");
/// Timeout of hosts to get their addresses.
const BOOT_MAX: Span = Span::from_secs(60);
/// Time for queued frames to arrive after the last one is sent.
const DRAIN: Span = Span::from_millis(20);
/// Polling interval of a host.
const LOOK: Span = Span::from_micros(2);
/// Bytes of blaster's frames, FCS included (§5.1).
pub(crate) const FRAME_BYTES: u64 = 1_000;
/// Bytes of UDP payload in them: without FCS, Ethernet, IPv4 and UDP headers.
const PAYLOAD: usize = FRAME_BYTES as usize - 4 - 42;
/// Maximum receive rate of a host in MB/s (§5.3).
pub(crate) const RECEIVER: f64 = 538.0;
/// Port of the first stream; each further one has the next.
const PORT: u16 = 5001;

/// CNA 1 to CNA 4, by their index.
pub(crate) const CNA: [usize; 4] = [0, 1, 2, 3];

/// Load of blaster's threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blaster {
    /// Number of threads.
    pub threads: u64,
    /// Total offered rate in MB/s.
    pub offers: f64,
}

impl Blaster {
    /// Four threads without a delay: all that a host can send (§5.2).
    pub(crate) const FULL: Blaster = Blaster { threads: 4, offers: 835.0 };
    /// Sixteen threads with a delay of 1 ms, which give about 250 MB/s (§5.5).
    pub(crate) const LOW: Blaster = Blaster { threads: 16, offers: 250.0 };

    /// Returns the interval of a thread's frames.
    fn interval(self) -> Span {
        let bytes = (self.threads * FRAME_BYTES) as f64;
        // Bytes per MB/s are microseconds, of 100,000 ticks.
        Span::from_ticks((bytes / self.offers * 1e5).round() as u64)
    }
}

/// Stream of frames between two hosts.
#[derive(Clone, Debug)]
pub struct Stream {
    from: usize,
    to: usize,
    sources: Vec<AppId>,
    sink: AppId,
}

/// Frame counts of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Frames handed to the sender's NIC.
    pub sent: u64,
    /// Frames read by the receiver.
    pub received: u64,
}

/// Throughput of a stream in MB/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Rate at the sender.
    pub sent: f64,
    /// Rate at the receiver.
    pub received: f64,
}

/// Testbed of the four hosts.
pub struct Ground {
    /// Simulated world of the four hosts.
    pub world: World,
    streams: u16,
}

/// Builds the fabric, with PFC for priorities 3 and 4, or without.
///
/// # Errors
/// None, unless the file in this folder is wrong.
pub(crate) fn fabric(pfc: bool) -> Result<Fabric> {
    let text = if pfc { FILE.to_owned() } else { FILE.replace(", lossless: true", "") };
    Ok(axon_fabric::parse(Path::new("cna.yaml"), &text)?)
}

/// Builds the fabric with PFC and further lines in its section `dcb`, such as `watermarks: {...}`.
///
/// # Errors
/// A line is no setting of `dcb`.
pub(crate) fn fabric_with(lines: &[&str]) -> Result<Fabric> {
    let more = lines.iter().map(|line| format!("  {line}\n"));
    let text = more.fold(FILE.to_owned(), |text, line| text + &line);
    Ok(axon_fabric::parse(Path::new("cna.yaml"), &text)?)
}

/// Returns frames per second at `mbps` MB/s as a rate of bytes without FCS, the unit of a ring.
fn reads(megabytes: f64) -> Option<Rate> {
    let bytes = FRAME_BYTES as f64 - 4.0;
    Rate::from_bits_per_second((megabytes * 1e6 / FRAME_BYTES as f64 * bytes * 8.0) as u64)
}

impl Ground {
    /// Boots the hosts, which read no faster than [`RECEIVER`].
    ///
    /// # Errors
    /// A host gets no address.
    pub(crate) fn new(pfc: bool, seed: u64) -> Result<Ground> {
        Ground::of(&fabric(pfc)?, seed)
    }

    /// Boots another fabric of these hosts.
    ///
    /// # Errors
    /// A host gets no address.
    pub(crate) fn of(fabric: &Fabric, seed: u64) -> Result<Ground> {
        let mut world = World::new(fabric, seed);
        let all = world.run_until_true(Time::ZERO + BOOT_MAX, World::all_have_addresses);
        ensure!(all, "not every host got an address");
        let mut ground = Ground { world, streams: 0 };
        CNA.into_iter().try_for_each(|host| ground.read_at(host, RECEIVER))?;
        Ok(ground)
    }

    /// Limits the read rate of a host in MB/s from now on.
    ///
    /// # Errors
    /// The host has no power.
    pub(crate) fn read_at(&mut self, host: usize, megabytes: f64) -> Result<()> {
        let rate = reads(megabytes);
        self.world.with_host(host, |host, _| host.rx_ring_mut().set_rate(rate)).context("power")
    }

    /// Limits the frames of each datagram socket of a host in the NIC from now on; beyond that, its
    /// thread is blocked.
    ///
    /// # Errors
    /// The host has no power.
    pub(crate) fn socket_frames(&mut self, host: usize, frames: u32) -> Result<()> {
        let set = self.world.with_host(host, |host, _| {
            if let Some(nic) = host.dcb_nic_mut() {
                nic.set_socket_frames(frames);
            }
        });
        set.context("power")
    }

    /// Runs for `span`; returns the percentage of it in which a priority of a host is paused,
    /// polled every 2 us.
    pub(crate) fn paused_percent(&mut self, host: usize, priority: Priority, span: Span) -> f64 {
        let looks = span.ticks() / LOOK.ticks();
        let mut paused = 0u64;
        for _ in 0..looks {
            self.world.run_for(LOOK);
            let now = self.world.now();
            let nic = self.world.host(host).and_then(Host::dcb_nic);
            paused += u64::from(nic.is_some_and(|nic| nic.paused(now).contains(priority)));
        }
        100.0 * paused as f64 / looks as f64
    }

    /// Returns an unused port whose frames have this priority.
    pub(crate) fn port(&mut self, priority: Priority) -> u16 {
        let port = PORT + self.streams;
        self.streams += 1;
        for host in CNA {
            self.world.with_host(host, |host, _| {
                host.dcb_nic_mut().map(|nic| nic.set_priority(port, priority))
            });
        }
        port
    }

    /// Starts blaster from one host to another.
    ///
    /// # Errors
    /// A host has no power or no address.
    pub(crate) fn blast(
        &mut self,
        (from, to): (usize, usize),
        blaster: Blaster,
        priority: Priority,
    ) -> Result<Stream> {
        let port = self.port(priority);
        let target = self.world.address(to).context("an address")?;
        let sink = self
            .world
            .with_host(to, |host, now| host.start(Plan::UdpSink { port }, now))
            .context("power")?;
        let interval = blaster.interval();
        let plan = UdpPlan { target, port, payload: PAYLOAD, interval, count: u64::MAX };
        let start = |thread: u64| {
            // Threads are offset in time.
            let offset = Span::from_ticks(interval.ticks() / blaster.threads * thread);
            let source =
                self.world.with_host(from, |host, now| host.start(Plan::Udp(plan), now + offset));
            source.context("power")
        };
        let sources = (0..blaster.threads).map(start).collect::<Result<_>>()?;
        Ok(Stream { from, to, sources, sink })
    }

    /// Returns the frame counts of a stream so far.
    pub(crate) fn frames(&self, stream: &Stream) -> Frames {
        let count = |host: usize, app: &AppId| self.world.flow_stats(host, *app);
        let sent = stream.sources.iter().filter_map(|source| count(stream.from, source));
        let received = count(stream.to, &stream.sink).map_or(0, |stats| stats.received.packets);
        Frames { sent: sent.map(|stats| stats.sent_packets).sum(), received }
    }

    /// Runs for a while; returns the throughput of each stream.
    pub(crate) fn measure<const N: usize>(
        &mut self,
        streams: [&Stream; N],
        span: Span,
    ) -> [Throughput; N] {
        let before = streams.map(|stream| self.frames(stream));
        self.world.run_for(span);
        let after = streams.map(|stream| self.frames(stream));
        // Bytes per nanosecond are thousands of MB/s.
        let rate = |frames: u64| (frames * FRAME_BYTES) as f64 / span.as_nanos() as f64 * 1e3;
        std::array::from_fn(|at| Throughput {
            sent: rate(after[at].sent - before[at].sent),
            received: rate(after[at].received - before[at].received),
        })
    }

    /// Ends a stream and waits for frames in flight; returns the number of its lost frames.
    pub(crate) fn lost(&mut self, stream: &Stream) -> u64 {
        for &source in &stream.sources {
            self.world.with_host(stream.from, |host, now| host.stop(source, now));
        }
        self.world.run_for(DRAIN);
        let Frames { sent, received } = self.frames(stream);
        sent - received
    }

    /// Returns the number of frames dropped anywhere for lack of room.
    pub(crate) fn dropped(&self) -> u64 {
        let dropped = self.world.engine().accounts().dropped;
        [Drop::QueueFull, Drop::HeadroomFull].iter().map(|&reason| dropped[reason as usize]).sum()
    }

    /// Returns the numbers of flow control frames for a priority that a host has sent, and
    /// received.
    pub(crate) fn flow_control(&self, host: usize, priority: Priority) -> (u64, u64) {
        self.world.host(host).and_then(Host::dcb_nic).map_or((0, 0), |nic| nic.counts(priority))
    }

    /// Checks that every frame has one fate.
    ///
    /// # Errors
    /// The accounts do not balance.
    pub(crate) fn check(&self) -> Result<()> {
        crate::axon::line::check_conservation(&self.world)
    }
}

/// Priority of all streams that share a fate (§5.1), which does not give its number.
pub(crate) const SHARED: Priority = Priority::from_low_bits(3);
/// Another priority with PFC.
pub(crate) const OTHER: Priority = Priority::from_low_bits(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_figure_5_1_with_and_without_flow_control() {
        let (with, without) = (fabric(true).unwrap(), fabric(false).unwrap());
        let at: Vec<usize> = with.hosts.iter().map(|host| host.switch).collect();
        assert_eq!((at, with.links.len()), (vec![0, 0, 1, 1], 1));
        let lossless = |fabric: &Fabric| fabric.dcb.as_ref().unwrap().lossless.bits();
        assert_eq!((lossless(&with), lossless(&without)), (0b1_1000, 0));
    }

    #[test]
    fn blaster_offers_what_it_says() {
        let interval = Blaster::LOW.interval();
        assert_eq!(interval, Span::from_micros(64), "16 frames of 1000 bytes in 64 us");
        assert_eq!(reads(538.0).unwrap().bits_per_second(), 4_286_784_000);
    }
}
