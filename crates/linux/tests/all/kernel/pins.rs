//! Objects that persist after a process, and objects that do not.

use super::chain::{at_tc, attach, next, pair, receive};
use super::step::hex;
use super::{BPF, bpf, kernel, settings};
use crate::alone;
use crate::runner::part;
use axon_linux::kernel::{AttachedPort, Attachment, Hook, Kernel, KernelError, KernelSettings};
use axon_linux::packet::PacketPort;
use axon_node::{PortKind, RouteError};
use axon_wire::{FrameBuf, HopWidth, MacAddr, PortNo, Route};
use aya::maps::{MapInfo, loaded_maps};
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::loaded_programs;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const HOSTS: PortNo = PortNo(1);
const AXON: PortNo = PortNo(2);
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

fn one_route() -> KernelSettings {
    KernelSettings { routes_per_port_max: 1, ..settings(Hook::Tc, HopWidth::Eight, 4) }
}

/// One of the processes that the tests below start.
pub fn run_part(words: &[&str]) -> ExitCode {
    match words[0] {
        "switch" => switch(),
        "filters" => filters(),
        "namespace" => {
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET).unwrap();
            bpf().expect("its parent could");
            devices();
            switch();
        }
        "nobody" => {
            nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).unwrap();
            let refused = Kernel::open(&Path::new(BPF).join("any"), one_route()).err().unwrap();
            println!("{refused}");
        }
        other => panic!("{other} is no child"),
    }
    ExitCode::SUCCESS
}

/// A switch of one host and one link that forwards, until it is killed.
fn switch() {
    let mut kernel = kernel("switch", one_route());
    attach(&mut kernel, HOSTS, "in1", PortKind::Host);
    attach(&mut kernel, AXON, "in2", PortKind::Axon);
    kernel.set_route(HOSTS, HOST, &Route::from([2, 7])).unwrap();
    let ids = Ids::pinned(Path::new(BPF));
    println!("{:?} {:?}", ids.programs, ids.maps);
    let _ = std::io::stdin().read(&mut [0]);
}

/// Runs the switch of [`switch`] as on a kernel without TCX links.
fn filters() {
    let mut kernel = kernel("switch", one_route());
    for (port, device, kind) in [(HOSTS, "in1", PortKind::Host), (AXON, "in2", PortKind::Axon)] {
        let ifindex = nix::net::if_::if_nametoindex(device).unwrap();
        kernel.set_port(port, ifindex, kind).unwrap();
        assert_eq!(kernel.attach_filter(port, device).unwrap(), Attachment::TcFilter);
    }
    kernel.set_route(HOSTS, HOST, &Route::from([2, 7])).unwrap();
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
}

fn start(name: &str) -> (Child, String) {
    let words = part("kernel", [name]);
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn devices() {
    pair("in1", "out1");
    pair("in2", "out2");
}

/// A frame of the host, and that frame on the link when its route has `hops` hops.
fn frame() -> Vec<u8> {
    let mut frame = [&HOST.0[..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb7]].concat();
    frame.resize(64, 0x5a);
    frame
}

fn pushed(last: u8) -> Vec<u8> {
    [&[0x10, 0, 0x80, 1, 0, 0x10, last, 1], &frame()[..]].concat()
}

struct Outside {
    host: PacketPort,
    link: PacketPort,
}

impl Outside {
    fn open() -> Outside {
        let [host, link] = ["out1", "out2"].map(|name| PacketPort::open(name, false).unwrap());
        Outside { host, link }
    }

    /// Asserts that a frame of the host reaches the link, with `last` as the remaining hop.
    fn passes(&mut self, last: u8) {
        self.host.send(&[FrameBuf::new(&frame())]).unwrap();
        let came = next(&mut self.link, || "the switch does not forward".into());
        assert_eq!(hex(&came), hex(&pushed(last)));
    }
}

/// Killed and opened again, while frames keep passing.
pub fn adopted() {
    if bpf().is_none() {
        return;
    }
    devices();
    let mut outside = Outside::open();
    for round in 0..5 {
        let (child, _) = start("switch");
        outside.passes(7);
        kill(child);
        outside.passes(7);
        let mut kernel = kernel("switch", one_route());
        let attached = kernel.attached().unwrap();
        let ports: Vec<PortNo> = attached.iter().map(|attached| attached.port).collect();
        assert_eq!(ports, [HOSTS, AXON]);
        let routes: Vec<_> = kernel.routes().map(Result::unwrap).collect();
        assert_eq!(routes, [(HOSTS, HOST, Route::from([2, 7]))]);
        assert_eq!(kernel.port(HOSTS).unwrap(), (attached[0].ifindex, PortKind::Host));
        assert_eq!(kernel.traffic(HOSTS).unwrap().in_frames, 203 * round + 2);
        assert!(kernel.take_used(HOSTS, HOST).unwrap());
        let full = kernel.set_route(HOSTS, MacAddr([2; 6]), &Route::from([2]));
        assert!(matches!(full, Err(KernelError::Route(RouteError::Full))), "it counts them");
        // Programs are replaced while frames pass.
        for _ in 0..20 {
            outside.passes(7);
            let frames: Vec<FrameBuf> = (0..9).map(|_| FrameBuf::new(&frame())).collect();
            outside.host.send(&frames).unwrap();
            assert_eq!(kernel.attach(HOSTS, "in1").unwrap(), Attachment::Tc);
            receive(&mut outside.link, 9, || "a frame was lost".into());
        }
        assert_eq!(kernel.attached().unwrap(), attached);
        kernel.set_route(HOSTS, HOST, &Route::from([2, 8])).unwrap();
        outside.passes(8);
    }
}

/// Tests [`adopted`], [`replaced_device`] and [`gone`] on a kernel without TCX links.
pub fn filtered() {
    if bpf().is_none() {
        return;
    }
    devices();
    let mut outside = Outside::open();
    let folder = Path::new(BPF).join("switch");
    for _ in 0..3 {
        let (child, line) = start("filters");
        assert_eq!(line, "ready\n");
        outside.passes(7);
        kill(child);
        outside.passes(7);
        let mut kernel = kernel("switch", one_route());
        let attached = kernel.attached().unwrap();
        let is: Vec<_> = attached.iter().map(|one| (one.port, one.attachment)).collect();
        assert_eq!(is, [(HOSTS, Attachment::TcFilter), (AXON, Attachment::TcFilter)]);
        // Replaced while frames pass.
        for _ in 0..20 {
            let frames: Vec<FrameBuf> = (0..9).map(|_| FrameBuf::new(&frame())).collect();
            outside.host.send(&frames).unwrap();
            assert_eq!(kernel.attach(HOSTS, "in1").unwrap(), Attachment::TcFilter);
            receive(&mut outside.link, 9, || "a frame was lost".into());
        }
        assert_eq!(kernel.attached().unwrap(), attached);
        assert_eq!(filters_of("in1"), 1);
        assert!(kernel.detach(HOSTS).unwrap() && !kernel.detach(HOSTS).unwrap());
        assert_eq!((filters_of("in1"), filters_of("in2")), (0, 1));
    }
    let mut kernel = kernel("switch", one_route());
    // Leftovers of a process that ended between the folder and the filter, or after the filter.
    assert_eq!(kernel.attach_filter(HOSTS, "in1").unwrap(), Attachment::TcFilter);
    remove_filters("in1");
    assert_eq!(kernel.attach(HOSTS, "in1").unwrap(), Attachment::TcFilter);
    outside.passes(7);
    remove_filters("in1");
    assert!(kernel.detach(HOSTS).unwrap());
    // From a link, where the kernel has them, to a filter and back.
    let is = kernel.attach(HOSTS, "in1").unwrap();
    assert!(at_tc(is));
    assert_eq!(kernel.attach_filter(HOSTS, "in1").unwrap(), Attachment::TcFilter);
    assert_eq!(kernel.attached().unwrap().len(), 2);
    outside.passes(7);
    assert!(kernel.detach(HOSTS).unwrap());
    assert_eq!(kernel.attach(HOSTS, "in1").unwrap(), is);
    assert_eq!(filters_of("in1"), usize::from(is == Attachment::TcFilter));
    filter_of_another(&mut kernel);
    // A removed device, and the end.
    assert_eq!(kernel.attach_filter(PortNo(3), "other").unwrap(), Attachment::TcFilter);
    assert_eq!(filters_of("other"), 1, "in the place of the one before");
    alone::ip("link delete other");
    assert_eq!(kernel.attach_filter(AXON, "in2").unwrap(), Attachment::TcFilter);
    alone::ip("link delete in1");
    assert_eq!(filters_of("in2"), 1);
    drop(kernel);
    Kernel::remove(&folder).unwrap();
    assert_eq!(filters_of("in2"), 0);
    assert!(!folder.exists());
}

/// The filter of another switch stays, and its number is not used.
fn filter_of_another(kernel: &mut Kernel) {
    alone::ip("link add name other index 201 type veth peer name outside");
    assert_eq!(kernel.attach_filter(PortNo(3), "other").unwrap(), Attachment::TcFilter);
    let home = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    alone::ip("link add name other index 201 type veth peer name outside");
    Kernel::open(&Path::new(BPF).join("second"), one_route())
        .and_then(|mut second| second.attach_filter(PortNo(3), "other"))
        .unwrap();
    assert!(kernel.detach(PortNo(3)).unwrap());
    assert_eq!(filters_of("other"), 1, "that is the filter of another switch");
    nix::sched::setns(&home, CloneFlags::CLONE_NEWNET).unwrap();
    assert_eq!(filters_of("other"), 1, "detached from where its device is not");
}

/// Number of filters at the ingress of a device.
fn filters_of(device: &str) -> usize {
    let shown = Command::new("tc").args(["filter", "show", "dev", device, "ingress"]).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    shown.lines().filter(|line| line.contains("direct-action")).count()
}

fn remove_filters(device: &str) {
    let removed = Command::new("tc").args(["filter", "del", "dev", device, "ingress"]).status();
    assert!(removed.unwrap().success());
}

/// A device with the number of the one before, or with another number.
pub fn replaced_device() {
    if bpf().is_none() {
        return;
    }
    for hook in [Hook::Tc, Hook::Xdp] {
        let mut kernel = kernel(&format!("{hook:?}"), settings(hook, HopWidth::Eight, 4));
        let attachment = if hook == Hook::Tc { Attachment::Tc } else { Attachment::XdpNative };
        let mut programs = Vec::new();
        for index in [101, 101, 103] {
            let name = "link add name in1 index";
            alone::ip(&format!("{name} {index} type veth peer name out1 index {}", index + 1));
            assert_eq!(kernel.attach(HOSTS, "in1").unwrap(), attachment);
            let expected = AttachedPort { port: HOSTS, ifindex: index, attachment };
            assert_eq!(kernel.attached().unwrap(), [expected]);
            programs.extend(Ids::pinned(&Path::new(BPF).join(format!("{hook:?}"))).programs);
            alone::ip("link delete in1");
        }
        assert!(programs[0] != programs[1] && programs[1] != programs[2], "{programs:?}");
        assert!(kernel.detach(HOSTS).unwrap() && !kernel.detach(HOSTS).unwrap());
        assert_eq!(kernel.attached().unwrap(), []);
    }
}

/// Programs and tables by the kernel's numbers, which are never reused.
#[derive(Debug, PartialEq, Eq)]
struct Ids {
    programs: Vec<u32>,
    maps: Vec<u32>,
}

impl Ids {
    /// Programs and tables pinned in a folder or below it.
    fn pinned(folder: &Path) -> Ids {
        let (mut programs, mut maps) = (Vec::new(), Vec::new());
        let mut ahead: Vec<PathBuf> = vec![folder.into()];
        while let Some(path) = ahead.pop() {
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                ahead.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if name.starts_with("link-") {
                let link = FdLink::from(PinnedLink::from_pin(&path).unwrap());
                programs.push(link.info().unwrap().program_id());
            } else if ["ports", "routes", "traffic", "node"].contains(&name) {
                maps.push(MapInfo::from_pin(&path).unwrap().id());
            }
        }
        programs.sort_unstable();
        maps.sort_unstable();
        Ids { programs, maps }
    }

    /// Programs and tables of these that the kernel still has.
    fn there(&self) -> Ids {
        let programs = loaded_programs().filter_map(Result::ok).map(|program| program.id());
        let maps = loaded_maps().filter_map(Result::ok).map(|map| map.id());
        Ids {
            programs: programs.filter(|id| self.programs.contains(id)).collect(),
            maps: maps.filter(|id| self.maps.contains(id)).collect(),
        }
    }

    /// Waits until the kernel, which frees them in the background, has none left.
    fn vanish(&self) {
        let end = Instant::now() + Duration::from_secs(10);
        let none = Ids { programs: Vec::new(), maps: Vec::new() };
        while self.there() != none {
            assert!(Instant::now() < end, "{:?} of {self:?} are there still", self.there());
            std::thread::yield_now();
        }
    }
}

/// Parses the output of [`switch`].
fn ids(line: &str) -> Ids {
    let numbers = |part: &str| -> Vec<u32> {
        let words = part.split([',', ' ']).filter(|word| !word.is_empty());
        words.map(|word| word.parse().unwrap()).collect()
    };
    let (programs, maps) = line.trim().split_once("] [").unwrap();
    Ids { programs: numbers(&programs[1..]), maps: numbers(maps.trim_end_matches(']')) }
}

pub fn gone() {
    if bpf().is_none() {
        return;
    }
    let (child, line) = start("namespace");
    let own = ids(&line);
    assert_eq!((own.programs.len(), own.maps.len()), (2, 4));
    assert_eq!(own.there(), own);
    kill(child);
    own.vanish();

    devices();
    let folder = Path::new(BPF).join("switch");
    let (child, line) = start("switch");
    let own = ids(&line);
    kill(child);
    assert_eq!((own.there(), Ids::pinned(&folder)), (ids(&line), ids(&line)));
    let mut outside = Outside::open();
    outside.passes(7);
    Kernel::remove(&folder).unwrap();
    Kernel::remove(&folder).unwrap();
    own.vanish();
    assert!(!folder.exists());
    let mut inside = PacketPort::open("in1", false).unwrap();
    outside.host.send(&[FrameBuf::new(&frame())]).unwrap();
    assert_eq!(next(&mut inside, || "to the stack".into()), frame());

    // A mount ends like a folder.
    let (child, line) = start("switch");
    kill(child);
    nix::mount::umount(BPF).unwrap();
    ids(&line).vanish();
}

pub fn refused() {
    let Some(bpf) = bpf() else { return };
    let mut kernel = kernel("switch", one_route());
    let said = |result: Result<(), KernelError>| {
        let text = result.unwrap_err().to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    };
    kernel.set_route(HOSTS, HOST, &Route::from([2])).unwrap();
    kernel.set_route(HOSTS, HOST, &Route::from([3])).unwrap();
    let full = kernel.set_route(HOSTS, MacAddr([2; 6]), &Route::from([2]));
    assert_eq!(said(full), "the route table of the port is full");
    kernel.set_route(AXON, MacAddr([2; 6]), &Route::from([2])).unwrap();
    assert!(
        kernel.remove_route(HOSTS, HOST).unwrap() && !kernel.remove_route(HOSTS, HOST).unwrap()
    );
    kernel.set_route(HOSTS, MacAddr([2; 6]), &Route::from([2])).unwrap();
    let long: Route = (0..55).map(PortNo).collect();
    let long = kernel.set_route(HOSTS, MacAddr([2; 6]), &long);
    let says = "a header of 61 bytes is longer than the 60 that the kernel attaches";
    assert_eq!(said(long), says);
    assert_eq!(said(kernel.set_port(PortNo(4), 1, PortKind::Axon)), "no such port");
    assert_eq!(said(kernel.set_route(PortNo(4), HOST, &Route::from([2]))), "no such port");
    let none = kernel.attach(HOSTS, "none").map(|_| ());
    assert!(said(none).starts_with("cannot attach to none: "));
    let other = KernelSettings { frame_bytes_max: 9014, ..one_route() };
    let other = said(Kernel::open(&bpf.join("switch"), other).map(|_| ()));
    assert!(other.contains("holds the tables of another data plane (tc-hops8-ports4-"), "{other}");

    let none: Option<&str> = None;
    std::fs::set_permissions(BPF, PermissionsExt::from_mode(0o777)).unwrap();
    mount(none, BPF, none, MsFlags::MS_REMOUNT, none).unwrap();
    let (mut child, line) = start("nobody");
    assert!(child.wait().unwrap().success());
    let says = "BPF programs are not permitted here: that takes root outside of user namespaces\n";
    assert_eq!(line, says);
}
