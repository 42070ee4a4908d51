//! Chains of switches on one CPU: the cost of one more hop, for each forwarding method.
//!
//! A program creates frames in batches of 64 (BPF_PROG_RUN with live frames) and sends them through
//! a row of namespaces. Each of these is a switch with two veth devices. The last namespace counts
//! the frames and drops them. Everything happens in the softirq that the generator's thread runs
//! after each batch, on the CPU to which it is bound. Therefore no frame is lost, and the CPU time
//! of that thread divided by the number of frames is the cost per frame. The cost of a switch and
//! its link is a quarter of the difference between a chain of five and a chain of one, because both
//! contain the generator and the end.
//!
//! Needs to be root on the machine, and needs its own thread, because it changes the network
//! namespace and the CPU of the thread.

mod clock;
mod devices;
mod programs;

pub use programs::Program;

use crate::kernel::{Hook, Kernel, KernelSettings};
use crate::namespace::Namespace;
use anyhow::{Context, Result, ensure};
use axon_node::PortKind;
use axon_wire::header::{self, PacketType};
use axon_wire::{HopWidth, MacAddr, PortNo, Route};
use devices::{LEFT, LEFT_INDEX, RIGHT_INDEX};
use std::path::Path;
use std::time::Duration;

/// Ports of each switch.
const IN: PortNo = PortNo(0);
const OUT: PortNo = PortNo(1);
const WIDTH: HopWidth = HopWidth::Eight;
/// Longest chain, in switches.
pub const SWITCHES_MAX: usize = 8;
/// Number of hops of each route here. Their header has 20 bytes.
const HOPS: usize = 14;
/// Length of a frame from a host, and between switches, in bytes.
const FRAME_BYTES: usize = 64;
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

/// Forwarding method that the switches of a chain use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Program that redirects to a fixed ifindex.
    Redirect(Hook),
    /// XDP program that redirects to the device in a map.
    RedirectByMap,
    /// Axon program for frames between switches: consumes one hop.
    Transit(Hook),
    /// Axon program for frames from a host: each switch prepends one more header.
    Push(Hook),
    /// Axon program for frames to a host: each switch removes a header.
    Strip(Hook),
    /// Linux bridge with a static entry.
    Bridge,
}

impl Forwarding {
    /// Returns the name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Forwarding::Redirect(Hook::Tc) => "tc redirect",
            Forwarding::Redirect(Hook::Xdp) => "xdp redirect",
            Forwarding::RedirectByMap => "xdp redirect by map",
            Forwarding::Transit(Hook::Tc) => "tc transit",
            Forwarding::Transit(Hook::Xdp) => "xdp transit",
            Forwarding::Push(Hook::Tc) => "tc push",
            Forwarding::Push(Hook::Xdp) => "xdp push",
            Forwarding::Strip(Hook::Tc) => "tc strip",
            Forwarding::Strip(Hook::Xdp) => "xdp strip",
            Forwarding::Bridge => "bridge",
        }
    }

    /// Returns the place where frames are forwarded: in drivers (XDP) or in the stack (tc).
    const fn hook(self) -> Hook {
        match self {
            Forwarding::Redirect(hook)
            | Forwarding::Transit(hook)
            | Forwarding::Push(hook)
            | Forwarding::Strip(hook) => hook,
            Forwarding::RedirectByMap => Hook::Xdp,
            Forwarding::Bridge => Hook::Tc,
        }
    }

    /// Returns a frame in the form in which the first of `switches` receives it.
    fn frame(self, switches: usize) -> Vec<u8> {
        let mut host = [&HOST.0[..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb7]].concat();
        host.resize(FRAME_BYTES, 0x5a);
        match self {
            Forwarding::Transit(_) => {
                header::emit(&mut host, WIDTH, PacketType::Ethernet, &[OUT; HOPS / 2 + 1], &[])
                    .expect("the hops fit");
                host
            }
            Forwarding::Strip(_) => {
                let mut one = vec![0; WIDTH.header_bytes(HOPS)];
                let back = [OUT; HOPS - 1];
                header::emit(&mut one, WIDTH, PacketType::Ethernet, &[OUT], &back)
                    .expect("the hops fit");
                [one.repeat(switches), host].concat()
            }
            _ => host,
        }
    }
}

/// Forwarding state of a switch, active until it is dropped.
enum Switch {
    /// Axon program.
    Axon(Box<Kernel>),
    /// Reference program for comparison.
    Bare { _program: Program },
    /// Linux bridge.
    Bridge,
}

/// Row of switches, with a generator and an end.
pub struct Chain {
    home: Namespace,
    namespaces: Vec<Namespace>,
    switches: Vec<Switch>,
    generator: Program,
    end: Program,
    frame: Vec<u8>,
    sent: u64,
}

impl Chain {
    /// Creates a chain of up to [`SWITCHES_MAX`] switches. With 0 switches, it consists of the
    /// generator and the end. Tables are pinned in `folder`, which must be in a BPF file system and
    /// which nothing else may use.
    ///
    /// # Errors
    /// There is no permission, `ip` or `bridge` is missing, or the kernel lacks a feature.
    pub fn new(folder: &Path, forwarding: Forwarding, switches: usize) -> Result<Chain> {
        ensure!(switches <= SWITCHES_MAX, "a chain has at most {SWITCHES_MAX} switches");
        let home = Namespace::here()?;
        let namespaces = devices::make(&home, switches)?;
        let frame = forwarding.frame(switches);
        ensure!(frame.len() >= programs::START_BYTES, "a frame is too short");
        let mut made = Vec::new();
        for number in 0..switches {
            let folder = folder.join(format!("switch{number}"));
            let make = || make_switch(&folder, forwarding, number);
            made.push(namespaces[number + 1].inside(&home, make)?);
        }
        let generator = namespaces[0].inside(&home, || {
            let mut generator = Program::generator(&frame)?;
            generator.set_device()?;
            Ok(generator)
        })?;
        let name = if forwarding.hook() == Hook::Tc { "tc_take" } else { "xdp_take" };
        let end = namespaces[switches + 1].inside(&home, || {
            let mut end = Program::load(name, 0)?;
            end.attach(LEFT)?;
            Ok(end)
        })?;
        let sent = 0;
        Ok(Chain { home, namespaces, switches: made, generator, end, frame, sent })
    }

    /// Sends `frames` frames and returns the CPU time used. That time includes about 25 ms in the
    /// kernel before and after some calls, so send a million frames.
    ///
    /// # Errors
    /// The kernel reports an error, or a frame was lost or left to a node.
    pub fn send(&mut self, frames: u32) -> Result<Duration> {
        let clock = clock::CpuTime::new()?;
        let (before, generator, frame) = (clock.now()?, &mut self.generator, &self.frame);
        self.namespaces[0].inside(&self.home, || generator.send(frame, frames))?;
        let took = clock.now()? - before;
        self.sent += u64::from(frames);
        let taken = self.end.taken()?;
        ensure!(taken == self.sent, "of {} frames {taken} came to the end", self.sent);
        for switch in &self.switches {
            let Switch::Axon(kernel) = switch else { continue };
            let (came, left) = (kernel.traffic(IN)?, kernel.traffic(OUT)?);
            ensure!(came.in_frames == self.sent, "{came:?} of {} frames", self.sent);
            ensure!(left.out_frames == self.sent, "{left:?} of {} frames", self.sent);
        }
        Ok(took)
    }
}

/// Binds the calling thread and its chains to one CPU.
///
/// # Errors
/// The kernel's error.
pub fn bind_to(cpu: usize) -> Result<()> {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).context("cannot be bound to a CPU")
}

fn make_switch(folder: &Path, forwarding: Forwarding, number: usize) -> Result<Switch> {
    let bare = |name: &'static str| -> Result<Switch> {
        let mut program = Program::load(name, RIGHT_INDEX)?;
        program.set_device()?;
        program.attach(LEFT)?;
        Ok(Switch::Bare { _program: program })
    };
    let axon = |hook: Hook, kinds| {
        let switch = make_axon(folder, hook, kinds, number);
        Ok(Switch::Axon(Box::new(switch.context("cannot make a switch")?)))
    };
    match forwarding {
        Forwarding::Redirect(Hook::Tc) => bare("tc_redirect"),
        Forwarding::Redirect(Hook::Xdp) => bare("xdp_redirect"),
        Forwarding::RedirectByMap => bare("xdp_redirect_map"),
        Forwarding::Transit(hook) => axon(hook, [PortKind::Axon, PortKind::Axon]),
        Forwarding::Push(hook) => axon(hook, [PortKind::Host, PortKind::Axon]),
        Forwarding::Strip(hook) => axon(hook, [PortKind::Axon, PortKind::Host]),
        Forwarding::Bridge => {
            devices::bridge(&HOST.to_string())?;
            Ok(Switch::Bridge)
        }
    }
}

/// Creates a switch with ports of these kinds, and installs the route for each incoming frame.
fn make_axon(folder: &Path, hook: Hook, kinds: [PortKind; 2], number: usize) -> Result<Kernel> {
    let settings = KernelSettings {
        hook,
        hop_width: WIDTH,
        ports: 16,
        routes_per_port_max: 4096,
        route_bytes_max: 128,
        frame_bytes_max: 1514,
        node_frames_per_ms: 0,
    };
    let mut kernel = Kernel::open(folder, settings)?;
    for (port, ifindex, kind) in [(IN, LEFT_INDEX, kinds[0]), (OUT, RIGHT_INDEX, kinds[1])] {
        kernel.set_port(port, ifindex, kind)?;
    }
    let route: Route = [OUT; HOPS].into_iter().collect();
    kernel.set_route(IN, pushed_destination(number), &route)?;
    kernel.attach(IN, LEFT)?;
    Ok(kernel)
}

/// Returns the first six bytes of a frame on which `headers` switches have pushed a header.
fn pushed_destination(headers: usize) -> MacAddr {
    if headers == 0 {
        return HOST;
    }
    let mut header = vec![0; WIDTH.header_bytes(HOPS)];
    header::emit(&mut header, WIDTH, PacketType::Ethernet, &[OUT; HOPS], &[])
        .expect("the hops fit");
    header::advance(&mut header, WIDTH, IN);
    MacAddr(*header.first_chunk().expect("a header has more than six bytes"))
}
