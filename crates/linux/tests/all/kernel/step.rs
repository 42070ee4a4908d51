//! Expected decisions of the programs, from `axon_plane` and the golden vectors.

use super::{bpf, kernel, settings};
use axon_linux::kernel::{Hook, Kernel, KernelSettings, LoadedProgram, Verdict};
use axon_node::PortKind;
use axon_plane::{Step, ethernet, forward};
use axon_wire::header::{HeaderFields, PacketType};
use axon_wire::{HopWidth, PortNo};
use std::collections::BTreeMap;

/// A device that frames can be redirected to: the only device of a new namespace.
pub const LOOPBACK: u32 = 1;
/// Length of the shortest frame that BPF_PROG_RUN accepts; devices accept 14 bytes or more.
pub const SHORTEST: usize = 15;
/// Forward hops within this many words of 64 bits can be consumed.
const WORDS_MAX: usize = 8;
/// Length of the shortest frame whose header tc can strip.
const SHORTEST_OF_TC: usize = 34;

/// Returns the egress and contents of a frame received at an Axon port. Returns `None` if the node
/// has to decide: for frames that `forward` leaves to it, and for those whose length the plane
/// refuses.
pub fn transit(
    frame: &[u8],
    settings: &KernelSettings,
    ingress: PortNo,
    kind_of: impl Fn(PortNo) -> Option<PortKind>,
) -> Option<(PortNo, Vec<u8>)> {
    let width = settings.hop_width;
    let header = HeaderFields::parse(frame, width).ok()?;
    if header.header_bytes > settings.route_bytes_max {
        return None;
    }
    let mut bytes = frame.to_vec();
    match forward(&mut bytes, width, ingress, kind_of) {
        Step::Egress(port) => Some((port, bytes)),
        Step::Strip { port, header_bytes } => {
            let frame = bytes.split_off(header_bytes);
            let fits = ethernet::fault(&frame, settings.frame_bytes_max).is_none();
            fits.then_some((port, frame))
        }
        Step::Punt(_) | Step::Drop(_) => None,
    }
}

/// True if a packet that [`transit`] forwards as `left` is within the limits of the programs, which
/// `ebpf/README.md` lists. The programs must not leave such a packet to the node.
pub fn is_within_limits(frame: &[u8], left: &[u8], settings: &KernelSettings) -> bool {
    let width = settings.hop_width;
    let header = HeaderFields::parse(frame, width).expect("it was forwarded");
    let stripped = left.len() < frame.len();
    let (at, skip) = if width == HopWidth::Four { (5, 4) } else { (6, 0) };
    let words = (skip + header.forward_count * width.bits()).div_ceil(64);
    let shortest = if settings.hook == Hook::Tc { SHORTEST_OF_TC } else { 0 };
    let tag = matches!(left.get(12..14), Some([0x81, 0] | [0x88, 0xa8]));
    let longest = settings.frame_bytes_max + if tag { 4 } else { 0 };
    let hops = stripped || words <= WORDS_MAX && at + 8 * words <= frame.len();
    let bytes = !stripped || (shortest..=longest).contains(&left.len());
    header.packet_type != PacketType::Probe && hops && bytes
}

/// Passes a frame through a program. Returns the frame if it leaves by a port, and `None` if it
/// goes to the node, unchanged. The tables name no device of the node, so tc drops frames for it.
pub fn run(program: &mut LoadedProgram, hook: Hook, frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = [0; 4096];
    let run = program.run(frame, &mut out, 1);
    let outcome = run.unwrap_or_else(|error| panic!("{} bytes: {error}", frame.len()));
    let bytes = &out[..outcome.bytes];
    if outcome.verdict == Verdict::Redirect {
        return Some(bytes.to_vec());
    }
    let left = if hook == Hook::Tc { Verdict::Drop } else { Verdict::Pass };
    assert_eq!((outcome.verdict, bytes), (left, frame));
    None
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(word: &str) -> Vec<u8> {
    let word = word.trim_start_matches('-');
    let byte = |at| u8::from_str_radix(&word[at..at + 2], 16).expect("hex digits");
    (0..word.len()).step_by(2).map(byte).collect()
}

/// Golden packets are short: each is run unchanged where possible, and with a payload.
pub fn vectors() {
    if bpf().is_none() {
        return;
    }
    let text = include_str!("../../../../../vectors/forward.txt");
    for hook in [Hook::Tc, Hook::Xdp] {
        let mut switches = BTreeMap::new();
        let mut tally = (0, 0);
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let fields: Vec<&str> = line.split(' ').collect();
            let [width, ingress, kinds, packet, "=>", verdict, _, left] = fields[..] else {
                panic!("not a case: {line}");
            };
            // The node's own packets do not arrive at a port.
            if ingress == "cpu" {
                continue;
            }
            let ingress = PortNo(ingress.parse().unwrap());
            let switch = switches
                .entry((width, ingress, kinds))
                .or_insert_with(|| Switch::new(hook, width, ingress, kinds));
            let (packet, left) = (bytes(packet), bytes(left));
            let forwarded = ["egress", "strip"].contains(&verdict);
            if packet.len() >= SHORTEST {
                switch.check(&packet, forwarded.then_some(&left[..]), &mut tally);
            }
            let payload: Vec<u8> = (0..60).collect();
            let packet = [packet, payload.clone()].concat();
            let left = if forwarded {
                Some([left, payload].concat())
            } else {
                // With more bytes it may be a packet.
                transit(&packet, switch.kernel.settings(), ingress, |port| switch.kind_of(port))
                    .map(|(_, left)| left)
            };
            switch.check(&packet, left.as_deref(), &mut tally);
        }
        let (decided, left) = tally;
        println!("{hook:?}: {decided} decided, {left} left to the node");
        assert!(decided >= 20 && left >= 20);
    }
}

/// A switch of a golden case.
struct Switch {
    kernel: Kernel,
    program: LoadedProgram,
    kinds: Vec<PortKind>,
}

impl Switch {
    fn new(hook: Hook, width: &str, ingress: PortNo, kinds: &str) -> Switch {
        let name = format!("{hook:?}-{width}-{ingress}-{kinds}");
        let width = match width {
            "4" => HopWidth::Four,
            "8" => HopWidth::Eight,
            _ => HopWidth::Sixteen,
        };
        let kind = |letter| match letter {
            'A' => PortKind::Axon,
            'H' => PortKind::Host,
            _ => PortKind::Unknown,
        };
        let mut kinds: Vec<PortKind> = kinds.chars().map(kind).collect();
        // The kind of the ingress port is not part of a case, but its program needs it.
        kinds[ingress.index()] = PortKind::Axon;
        let most = settings(hook, width, kinds.len() as u16);
        let mut kernel = kernel(&name, KernelSettings { route_bytes_max: 65535, ..most });
        for (port, &kind) in (0..).map(PortNo).zip(&kinds) {
            kernel.set_port(port, LOOPBACK, kind).unwrap();
        }
        let program = kernel.load(ingress).unwrap();
        Switch { kernel, program, kinds }
    }

    fn kind_of(&self, port: PortNo) -> Option<PortKind> {
        self.kinds.get(port.index()).copied()
    }

    /// Runs one packet, which must leave as `expected` if it is forwarded at all.
    fn check(&mut self, packet: &[u8], expected: Option<&[u8]>, tally: &mut (u32, u32)) {
        let settings = self.kernel.settings();
        let context = || format!("{settings:?}: {}", hex(packet));
        match (expected, run(&mut self.program, settings.hook, packet)) {
            (Some(expected), Some(out)) => {
                assert_eq!(hex(&out), hex(expected), "{}", context());
                tally.0 += 1;
            }
            (None, Some(_)) => panic!("forwarded: {}", context()),
            (expected, None) => {
                let within = expected.is_some_and(|left| is_within_limits(packet, left, settings));
                assert!(!within, "left to the node: {}", context());
                tally.1 += 1;
            }
        }
    }
}
