//! Cost of a hop in the kernel's programs: `cargo bench -p axon-linux`, as root.
//!
//! BPF_PROG_RUN runs each job on a frame of about 100 bytes. With tc, a call runs the program 7
//! times and leaves the frame as the program made it. So packets have 8 hops, or 7 nested headers,
//! and a pushed frame has a route of its own. With XDP that would make the kernel wait for all
//! readers at each call, and measure cold caches; there a call runs the program once, and the clock
//! weighs more. The median of many calls counts. Compare with `nothing`, which includes the clock,
//! and with `redirect`, which parses nothing. A device, a driver and its queues cost several times
//! as much, and are not included: see the benchmark `hops`.

use axon_linux::chain::Program;
use axon_linux::kernel::{Hook, Kernel, KernelSettings, LoadedProgram};
use axon_node::PortKind;
use axon_wire::header::{self, PacketType};
use axon_wire::{HopWidth, MacAddr, PortNo, Route};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::path::Path;
use std::time::Duration;

const BPF: &str = "/sys/fs/bpf";
/// Maximum number of runs of a call.
const REPEAT_MAX: u32 = 7;
const CALLS: usize = 5000;
const AXON: PortNo = PortNo(0);
const HOSTS: PortNo = PortNo(1);
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
/// Device that frames are sent to; no frame reaches it.
const LOOPBACK: u32 = 1;

const fn repeat(hook: Hook) -> u32 {
    match hook {
        Hook::Tc => REPEAT_MAX,
        Hook::Xdp => 1,
    }
}

fn main() {
    if let Err(why) = own_file_system() {
        println!("no BPF file system can be mounted here ({why})");
        return;
    }
    for hook in [Hook::Tc, Hook::Xdp] {
        if let Err(why) = measure(hook) {
            println!("{hook:?}: {why}");
        }
    }
}

fn own_file_system() -> nix::Result<()> {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    mount(Some("bpf"), BPF, Some("bpf"), MsFlags::empty(), none)
}

fn measure(hook: Hook) -> anyhow::Result<()> {
    let name = format!("{hook:?}").to_lowercase();
    let mut kernel = Kernel::open(
        &Path::new(BPF).join(&name),
        KernelSettings {
            hook,
            hop_width: HopWidth::Eight,
            ports: 4,
            routes_per_port_max: 4096,
            route_bytes_max: 128,
            frame_bytes_max: 1514,
            node_frames_per_ms: 0,
        },
    )?;
    kernel.set_port(AXON, LOOPBACK, PortKind::Axon)?;
    kernel.set_port(HOSTS, LOOPBACK, PortKind::Host)?;
    let route = Route::from([AXON.0, 7]);
    kernel.set_route(HOSTS, HOST, &route)?;
    // Destination MAC in a frame after the first push.
    kernel.set_route(HOSTS, MacAddr([0x10, 0, 0x80, 1, 0, 0x10]), &route)?;
    let (transit, strip, push) = (transit(), strip(), push());
    let mut jobs: Vec<(&str, Duration)> = Vec::new();
    let repeat = repeat(hook);
    let bare = match hook {
        Hook::Tc => ["tc_nothing", "tc_redirect"],
        Hook::Xdp => ["xdp_nothing", "xdp_redirect"],
    };
    for (job, program) in ["nothing", "redirect"].into_iter().zip(bare) {
        let mut program = Program::load(program, LOOPBACK)?;
        jobs.push((job, median(&push, |frame| Ok(program.run(frame, repeat)?.duration))?));
    }
    let mut at_axon = kernel.load(AXON)?;
    let mut at_hosts = kernel.load(HOSTS)?;
    jobs.push(("transit", median(&transit, |frame| run(&mut at_axon, frame, repeat))?));
    jobs.push(("push", median(&push, |frame| run(&mut at_hosts, frame, repeat))?));
    jobs.push(("strip", median(&strip, |frame| run(&mut at_axon, frame, repeat))?));
    let (axon, hosts) = (kernel.traffic(AXON)?, kernel.traffic(HOSTS)?);
    let left = axon.node_packets + hosts.node_packets + axon.lost_packets + hosts.lost_packets;
    anyhow::ensure!(left == 0, "{left} frames were left to the node, and measured");
    let nothing = jobs[0].1;
    for (job, duration) in jobs {
        let more = duration.saturating_sub(nothing).as_nanos();
        println!(
            "{name:4} {job:9} {:4} ns a frame, {more:4} more than nothing",
            duration.as_nanos()
        );
    }
    Ok(())
}

fn median(
    frame: &[u8],
    mut run: impl FnMut(&[u8]) -> anyhow::Result<Duration>,
) -> anyhow::Result<Duration> {
    let mut durations = Vec::new();
    for _ in 0..CALLS {
        durations.push(run(frame)?);
    }
    durations.sort();
    Ok(durations[durations.len() / 2])
}

fn run(program: &mut LoadedProgram, frame: &[u8], repeat: u32) -> anyhow::Result<Duration> {
    Ok(program.run(frame, &mut [0; 1024], repeat)?.duration)
}

fn push() -> Vec<u8> {
    let mut frame = [&HOST.0[..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb7]].concat();
    frame.resize(100, 0x5a);
    frame
}

/// Returns a packet with a forward hop for every run of a call, and one more.
fn transit() -> Vec<u8> {
    let mut packet = vec![0x5a; 100];
    let hops = [AXON; REPEAT_MAX as usize + 1];
    header::emit(&mut packet, HopWidth::Eight, PacketType::Ethernet, &hops, &[])
        .expect("eight hops fit");
    packet
}

/// Returns a packet with a header for every run of a call, one in front of the other.
fn strip() -> Vec<u8> {
    let mut one = vec![0; HopWidth::Eight.header_bytes(1)];
    header::emit(&mut one, HopWidth::Eight, PacketType::Ethernet, &[HOSTS], &[])
        .expect("a hop fits");
    let mut packet = one.repeat(REPEAT_MAX as usize);
    packet.extend(push());
    packet
}
