//! Compares transit processing by table entries with that of the plane.

use axon_node::{Drop, PortKind};
use axon_pipeline::{EntryName, Sizes, TableName};
use axon_plane::{Lookups, PlaneConfig, Step, forward};
use axon_programs::axon::{AxonTables, entries};
use axon_wire::header::{self, HOPS_MAX, HeaderFields, PacketType};
use axon_wire::{HopWidth, MacAddr, PortNo};
use oorandom::Rand64;

const WIDTHS: [HopWidth; 3] = [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen];
const KINDS: [PortKind; 3] = [PortKind::Unknown, PortKind::Axon, PortKind::Host];

fn config(width: HopWidth, ports: u16) -> PlaneConfig {
    PlaneConfig { hop_width: width, ..PlaneConfig::with_ports(ports, MacAddr([2; 6])) }
}

fn tables(width: HopWidth, kinds: &[PortKind]) -> AxonTables {
    let mut tables = AxonTables::with_config(&config(width, kinds.len() as u16));
    (0..).map(PortNo).zip(kinds).for_each(|(port, &kind)| tables.set_kind(port, kind));
    tables
}

/// Processes a packet by the entries. The parser refuses frames without a valid header.
fn step(tables: &mut AxonTables, width: HopWidth, ingress: PortNo, bytes: &mut [u8]) -> Step {
    match HeaderFields::parse(bytes, width) {
        Ok(header) => {
            let kind_of = |port| -> Option<PortKind> { panic!("{port}: the entries know kinds") };
            tables.forward(bytes, width, &header, ingress, kind_of)
        }
        Err(_) => Step::Drop(Drop::Malformed),
    }
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".into();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn port(word: &str) -> PortNo {
    if word == "cpu" { PortNo::CONTROL } else { PortNo(word.parse().expect("a port")) }
}

/// Returns the result that the entries give for a case in `vectors/forward.txt`.
fn answer(inputs: &str) -> String {
    let fields: Vec<&str> = inputs.split(' ').collect();
    let [bits, ingress, kinds, packet] = fields[..] else { panic!("not a case: {inputs}") };
    let of_bits = |width: &&HopWidth| width.bits().to_string() == bits;
    let width = *WIDTHS.iter().find(of_bits).expect("a hop width");
    let kind = |letter| KINDS["UAH".find(letter).expect("a kind of port")];
    let kinds: Vec<PortKind> = kinds.chars().map(kind).collect();
    let byte = |at| u8::from_str_radix(&packet[at..at + 2], 16).expect("hex digits");
    let packet = if packet == "-" { "" } else { packet };
    let mut packet: Vec<u8> = (0..packet.len()).step_by(2).map(byte).collect();
    match step(&mut tables(width, &kinds), width, port(ingress), &mut packet) {
        Step::Egress(port) => format!("egress {} {}", port.0, hex(&packet)),
        Step::Strip { port, header_bytes } => {
            format!("strip {} {}", port.0, hex(&packet[header_bytes..]))
        }
        Step::Punt(punt) => format!("punt-{} {ingress} {}", punt.name(), hex(&packet)),
        Step::Drop(reason) => format!("drop-{} - {}", reason.name(), hex(&packet)),
    }
}

#[test]
fn the_entries_take_the_step_as_in_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/forward.txt");
    let text = std::fs::read_to_string(path).expect("the vectors are part of the repository");
    let cases = text.lines().filter(|line| !line.starts_with('#'));
    let cases = cases.filter_map(|line| line.split_once(" => "));
    let mut count = 0;
    for (inputs, expected) in cases {
        assert_eq!(answer(inputs), expected, "{inputs}");
        count += 1;
    }
    assert!(count >= 40, "{count} cases");
}

/// Random numbers for the tests.
struct Dice(Rand64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.rand_range(0..limit)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Draws a port that a hop of this width can represent, mostly a port of the switch.
    fn hop(&mut self, width: HopWidth, ports: u16) -> PortNo {
        match self.below(8) {
            0 => PortNo::CONTROL,
            1 => PortNo(self.below(width.ports_max() as u64) as u16),
            _ => PortNo(self.below(u64::from(ports) + 1) as u16 % width.ports_max() as u16),
        }
    }

    fn hops(&mut self, width: HopWidth, ports: u16) -> Vec<PortNo> {
        let count = match self.below(600) {
            0 => HOPS_MAX as u64,
            1..30 => self.below(60),
            _ => self.below(7),
        };
        (0..count).map(|_| self.hop(width, ports)).collect()
    }

    /// Draws a frame received on an Axon port, mostly with a valid header.
    fn frame(&mut self, width: HopWidth, ports: u16) -> Vec<u8> {
        let payload = self.below(80) as usize;
        let (onward, back) = (self.hops(width, ports), self.hops(width, ports));
        let length = width.header_bytes(onward.len() + back.len());
        let mut bytes: Vec<u8> = (0..length + payload).map(|_| self.below(256) as u8).collect();
        if self.below(20) > 0 {
            let of_type = self.pick(&PacketType::ALL);
            header::emit(&mut bytes, width, of_type, &onward, &back).expect("it fits");
        }
        if self.below(2) == 0 {
            // A priority, and the reserved bits.
            let spare = [(5, 0x0f), (length - 1, 0x0f)][usize::from(width == HopWidth::Four)];
            bytes[spare.0] ^= self.below(16) as u8 & spare.1;
        }
        if self.below(10) == 0 {
            let at = self.below(bytes.len().min(12) as u64) as usize;
            bytes[at] ^= 1 << self.below(8);
        }
        if self.below(50) == 0 {
            bytes.truncate(self.below(bytes.len() as u64 + 1) as usize);
        }
        bytes
    }
}

/// Returns an index for the outcome of a step, for counting.
fn outcome(step: &Step) -> usize {
    match step {
        Step::Egress(_) => 0,
        Step::Strip { .. } => 1,
        Step::Punt(axon_node::Punt::Addressed) => 2,
        Step::Punt(_) => 3,
        Step::Drop(Drop::Malformed) => 4,
        Step::Drop(Drop::NoSuchPort) => 5,
        Step::Drop(_) => 6,
    }
}

#[test]
fn the_entries_take_the_same_step_as_the_plane_for_200000_random_frames() {
    let mut dice = Dice(Rand64::new(14));
    let (mut outcomes, mut full) = ([0_u32; 7], 0);
    for switch in 0..2000 {
        let width = dice.pick(&WIDTHS);
        let most = width.ports_max().min(40) as u64;
        let ports = 1 + dice.below(most) as u16;
        let mut kinds: Vec<PortKind> = (0..ports).map(|_| dice.pick(&KINDS)).collect();
        let mut tables = tables(width, &kinds);
        for number in 0..100 {
            if dice.below(10) == 0 {
                let changed = dice.below(u64::from(ports)) as usize;
                kinds[changed] = dice.pick(&KINDS);
                tables.set_kind(PortNo(changed as u16), kinds[changed]);
            }
            let ingress = dice.hop(width, ports);
            let came = dice.frame(width, ports);
            let (mut expected_bytes, mut bytes) = (came.clone(), came.clone());
            let kind_of = |port: PortNo| kinds.get(port.index()).copied();
            let expected = forward(&mut expected_bytes, width, ingress, kind_of);
            let taken = step(&mut tables, width, ingress, &mut bytes);
            let context = || format!("switch {switch}, frame {number}: {width:?} {}", hex(&came));
            assert_eq!(taken, expected, "{}", context());
            assert_eq!(bytes, expected_bytes, "{}", context());
            outcomes[outcome(&taken)] += 1;
            let parsed = HeaderFields::parse(&came, width);
            full += u32::from(parsed.is_ok_and(|header| header.reverse_count == HOPS_MAX));
        }
    }
    assert!(outcomes.iter().all(|&count| count > 3000) && full > 100, "{outcomes:?}, {full}");
}

#[test]
fn a_switch_costs_three_entries_and_one_or_two_for_each_port() {
    for width in WIDTHS {
        let kinds = [PortKind::Axon, PortKind::Host, PortKind::Host, PortKind::Unknown];
        let tables = tables(width, &kinds);
        assert_eq!(tables.tables().count(TableName::Tcam).entries, 3 + 4 + 2);
        assert_eq!(tables.tables().count(TableName::Udlk).entries, 1);
        assert_eq!(tables.tables().count(TableName::Mac).entries, 0);
    }
    let largest = entries::ports_in(Sizes::default().tcam);
    assert_eq!(largest, 1022);
    let mut tables = AxonTables::with_config(&config(HopWidth::Sixteen, largest));
    (0..largest).for_each(|port| tables.set_kind(PortNo(port), PortKind::Host));
    let count = tables.tables().count(TableName::Tcam);
    assert_eq!((count.entries, entries::places(largest)), (2047, 2047));
}

#[test]
fn an_entry_counts_the_packets_that_meet_it() {
    let mut tables = tables(HopWidth::Eight, &[PortKind::Axon, PortKind::Host]);
    let mut bytes = [0xee; 40];
    for next in [0, 1, 1] {
        let hops = [PortNo(next)];
        header::emit(&mut bytes, HopWidth::Eight, PacketType::Ethernet, &hops, &[]).unwrap();
        step(&mut tables, HopWidth::Eight, PortNo(0), &mut bytes);
    }
    let counters = |index| tables.tables().counters(EntryName::Tcam(index));
    assert_eq!(
        [counters(0), counters(2), counters(3)],
        [Some((1, 40)), Some((0, 0)), Some((2, 80))]
    );
}
