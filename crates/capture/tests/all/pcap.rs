//! Captures from other programs, our captures as read by others, and malformed captures.

mod model;

use super::needs;
use axon_capture::pcap::{Direction, FRAME_BYTES_MAX, LinkType, ReadError, Writer};
use model::{Owned, check, read, write};
use std::process::Command;

const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;

/// Encodes numbers in one byte order.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

const LITTLE: Order = Order { big: false };
const BIG: Order = Order { big: true };

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words(self, values: &[u32]) -> Vec<u8> {
        let bytes = |&value: &u32| if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        values.iter().flat_map(bytes).collect()
    }

    /// A pcap file with Ethernet frames: seconds, micro- or nanoseconds, length on the wire, bytes.
    fn pcap(self, magic: u32, snap: u32, frames: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let versions = [self.u16(2), self.u16(4)].concat();
        let mut file = [self.words(&[magic]), versions, self.words(&[0, 0, snap, 1])].concat();
        for (seconds, part, wire, bytes) in frames {
            file.extend(self.words(&[*seconds, *part, bytes.len() as u32, *wire]));
            file.extend(*bytes);
        }
        file
    }

    /// Encodes a block with its padding.
    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        let mut block = [&self.words(&[kind, length]), body].concat();
        block.resize(length as usize - 4, 0);
        block.extend(self.words(&[length]));
        block
    }

    fn section(self) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        let body = [self.words(&[0x1a2b_3c4d]), version, vec![0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, link_type: u16, snap: u32, options: &[u8]) -> Vec<u8> {
        let fields = [&self.u16(link_type)[..], &[0, 0], &self.words(&[snap])].concat();
        self.block(1, &[&fields, options].concat())
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [&self.u16(code)[..], &self.u16(value.len() as u16), value].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn packet(self, interface: u32, units: u64, bytes: &[u8], options: &[u8]) -> Vec<u8> {
        let (high, low, kept) = ((units >> 32) as u32, units as u32, bytes.len() as u32);
        let mut body = [&self.words(&[interface, high, low, kept, 1514]), bytes].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        self.block(6, &[&body, options].concat())
    }
}

fn frame(name: &str, link_type: LinkType, direction: Direction, nanos: u64, len: usize) -> Owned {
    let bytes: Vec<u8> = (0..len).map(|n| (n * 7) as u8).collect();
    let (name, direction) = (name.to_owned(), Some(direction));
    Owned { name, link_type, direction, unix_nanos: nanos, wire_bytes: len, bytes }
}

/// Frames with every length of padding, at several ports, of both link types.
fn several() -> Vec<Owned> {
    let (axon, ethernet) = (LinkType::AXON, LinkType::ETHERNET);
    vec![
        frame("s1-p0", axon, Direction::Inbound, 1_700_000_000_123_456_789, 60),
        frame("s1-p0", ethernet, Direction::Outbound, 1_700_000_000_123_456_790, 61),
        frame("s1-p1", axon, Direction::Outbound, 1_700_000_000_223_456_789, 1514),
        frame("s1-p1", axon, Direction::Inbound, 0, 0),
        frame("s1-p0", axon, Direction::Inbound, 5, 63),
        frame("s2-p0", ethernet, Direction::Outbound, u64::MAX, FRAME_BYTES_MAX),
    ]
}

#[test]
fn what_was_written_is_read() {
    let (frames, end) = read(&write(&several())[..]);
    assert!(end.is_none(), "{end:?}");
    assert_eq!(frames, several());
}

#[test]
fn a_snap_length_cuts_the_bytes_and_keeps_the_length() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, 96, 1 << 20).unwrap();
    let (to, out) = (LinkType::ETHERNET, Direction::Outbound);
    writer.record((0, "s1-p0"), to, out, 1, &[4; 1514]).unwrap();
    writer.record((0, "s1-p0"), to, out, 2, &[5; 60]).unwrap();
    drop(writer);
    let lengths = |frames: &[Owned]| -> Vec<_> {
        frames.iter().map(|frame| (frame.bytes.len(), frame.wire_bytes)).collect()
    };
    assert_eq!(lengths(&read(&file[..]).0), [(96, 1514), (60, 60)]);
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_both_units() {
    // The first frame is longer on the wire than the snap length.
    let frames: [(u32, u32, u32, &[u8]); 2] =
        [(10, 999_999, 1514, &[1; 60]), (11, 2, 70, &[2; 70])];
    for order in [LITTLE, BIG] {
        for (magic, nanos) in
            [(MICROS, [10_999_999_000, 11_000_002_000]), (NANOS, [10_000_999_999, 11_000_000_002])]
        {
            let (read, end) = read(&order.pcap(magic, 96, &frames)[..]);
            assert!(end.is_none(), "{end:?}");
            assert_eq!([read[0].unix_nanos, read[1].unix_nanos], nanos);
            assert_eq!((&read[0].bytes[..], read[0].wire_bytes), (&[1; 60][..], 1514));
            assert_eq!((&read[1].bytes[..], read[1].wire_bytes), (&[2; 70][..], 70));
            assert!(read.iter().all(|frame| frame.link_type == LinkType::ETHERNET));
        }
    }
}

#[test]
fn pcapng_is_read_with_its_units_of_time_in_both_byte_orders() {
    for order in [LITTLE, BIG] {
        let resolution = |value: u8| order.option(9, &[value]);
        let ahead =
            [resolution(9), order.option(14, &[&order.words(&[0])[..]; 2].concat())].concat();
        for (options, nanos) in [
            (vec![], 5_000_003_000),
            (resolution(6), 5_000_003_000),
            (resolution(9), 5_000_003),
            (resolution(12), 5_000),
            (resolution(0x80 | 20), 4_768_374_443),
            (resolution(0), 5_000_003_000_000_000),
            (resolution(127), 0),
            (resolution(255), 0),
            (ahead, 5_000_003),
        ] {
            let interface = order.interface(1, 0, &options);
            let packet = order.packet(0, 5_000_003, &[8; 61], &[]);
            let (read, end) = read(&[order.section(), interface, packet].concat()[..]);
            assert!(end.is_none(), "{end:?}");
            assert_eq!(read[0].unix_nanos, nanos, "{options:?}");
            assert_eq!((&read[0].bytes[..], read[0].wire_bytes), (&[8; 61][..], 1514));
        }
    }
}

#[test]
fn an_offset_of_seconds_is_added() {
    for (seconds, nanos) in [(3_i64, 3_000_000_007), (-3, 0), (i64::MAX, u64::MAX)] {
        let options = [LITTLE.option(9, &[9]), LITTLE.option(14, &seconds.to_le_bytes())].concat();
        let packet = LITTLE.packet(0, 7, &[1; 60], &[]);
        let interface = LITTLE.interface(1, 0, &options);
        let (read, _) = read(&[LITTLE.section(), interface, packet].concat()[..]);
        assert_eq!(read[0].unix_nanos, nanos);
    }
}

#[test]
fn options_that_are_odd_cost_no_frame() {
    for order in [LITTLE, BIG] {
        // A time zone, a comment that is not UTF-8, and no end mark.
        let odd = [order.option(10, &[0, 0, 0, 7]), order.option(1, &[0xff, 0xfe, 0xff])].concat();
        let name = order.option(2, b"eth0");
        let inbound = order.option(2, &order.words(&[1]));
        let short = order.option(2, &[1]);
        let file = [
            order.section(),
            order.interface(1, 0, &[&odd[..], &name].concat()),
            order.packet(0, 1, &[1; 60], &[&odd[4..], &inbound].concat()),
            order.packet(0, 1, &[2; 60], &inbound),
            order.packet(0, 1, &[3; 60], &short),
            order.packet(0, 1, &[4; 60], &[0, 2, 0xff, 0xff]),
        ];
        let (read, end) = read(&file.concat()[..]);
        assert!(end.is_none(), "{end:?}");
        let directions: Vec<_> = read.iter().map(|frame| frame.direction).collect();
        assert_eq!(directions[1..], [Some(Direction::Inbound), None, None]);
        assert!(read.iter().all(|frame| frame.name == "eth0"));
    }
}

#[test]
fn a_new_section_counts_its_interfaces_anew_and_has_a_byte_order_of_its_own() {
    let section = |order: Order, link_type: u16, unit: u64| {
        let interface = order.interface(link_type, 0, &order.option(2, b"x"));
        let other = order.block(99, &[1, 2, 3]);
        [order.section(), interface, other, order.packet(0, unit, &[1; 60], &[])].concat()
    };
    let file = [section(LITTLE, 1, 5), section(BIG, 147, 6), section(LITTLE, 101, 7)].concat();
    let (read, end) = read(&file[..]);
    assert!(end.is_none(), "{end:?}");
    let seen: Vec<_> = read.iter().map(|frame| (frame.link_type, frame.unix_nanos)).collect();
    assert_eq!(
        seen,
        [(LinkType::ETHERNET, 5_000), (LinkType::AXON, 6_000), (LinkType::RAW, 7_000)]
    );
}

#[test]
fn simple_and_obsolete_packets_are_read() {
    for order in [LITTLE, BIG] {
        let simple = [order.words(&[1514]), vec![3; 96]].concat();
        let whole = [order.words(&[61]), vec![4; 64]].concat();
        let ids = [order.u16(0), order.u16(9)].concat();
        let obsolete = [ids, order.words(&[1, 2, 62, 62]), vec![5; 64]].concat();
        let file = [
            order.section(),
            order.interface(1, 96, &order.option(9, &[9])),
            order.packet(0, 7, &[1; 60], &[]),
            order.block(3, &simple),
            order.block(3, &whole),
            order.block(2, &obsolete),
        ];
        let (read, end) = read(&file.concat()[..]);
        assert!(end.is_none(), "{end:?}");
        let seen = |at: usize| (&read[at].bytes[..], read[at].wire_bytes, read[at].unix_nanos);
        assert_eq!(seen(1), (&[3; 96][..], 1514, 7), "it has no time: that of the one before");
        assert_eq!(seen(2), (&[4; 61][..], 61, 7), "padding is no part of it");
        assert_eq!(seen(3), (&[5; 62][..], 62, (1 << 32) + 2));
    }
}

#[test]
fn an_fcs_that_the_file_declares_is_no_part_of_the_frame() {
    let lengths = |file: &[u8]| -> Vec<(usize, usize)> {
        let (frames, end) = read(file);
        assert!(end.is_none(), "{end:?}");
        frames.iter().map(|frame| (frame.bytes.len(), frame.wire_bytes)).collect()
    };
    for order in [LITTLE, BIG] {
        // Whole, cut within the FCS, cut before it, and shorter than an FCS.
        let frames: [(u32, u32, u32, &[u8]); 4] =
            [(1, 0, 64, &[1; 64]), (2, 0, 64, &[2; 62]), (3, 0, 64, &[3; 20]), (4, 0, 2, &[4; 2])];
        let whole = [(64, 64), (62, 64), (20, 64), (2, 2)];
        let without = [(60, 60), (60, 60), (20, 60), (0, 0)];
        // A length of 2 words, one of 4 bytes as some write it, one without the flag, none.
        let fields = [(0x2400_0001, without), (0x4400_0001, without), (0x2000_0001, whole)];
        for (field, expected) in fields.into_iter().chain([(0x0400_0001, whole)]) {
            let mut file = order.pcap(MICROS, 65_535, &frames);
            file[20..24].copy_from_slice(&order.words(&[field]));
            assert_eq!(lengths(&file), expected, "{field:#x}");
        }
        let flags = |flags: u32| order.option(2, &order.words(&[flags]));
        for (link_type, interface, packet, expected) in [
            (1, vec![], vec![], 1514),
            (1, order.option(13, &[4]), vec![], 1510),
            (1, order.option(13, &[32]), vec![], 1510),
            (1, order.option(13, &[0]), vec![], 1514),
            (1, vec![], flags(4 << 5 | 1), 1510),
            (1, order.option(13, &[4]), flags(1), 1510),
            (101, order.option(13, &[4]), vec![], 1514),
        ] {
            let file = [
                order.section(),
                order.interface(link_type, 0, &interface),
                order.packet(0, 1, &[8; 1514], &packet),
                order.packet(0, 1, &[8; 64], &packet),
            ];
            assert_eq!(lengths(&file.concat()), [(expected, expected), (64, expected)]);
        }
    }
}

/// Returns files with three frames each, with the offsets of their records and of their end.
fn files() -> [(Vec<u8>, Vec<usize>); 2] {
    let pcap = LITTLE.pcap(MICROS, 65_535, &[(1, 2, 60, &[1; 60][..]); 3]);
    let ends = vec![24, 100, 176, 252];
    let blocks = [LITTLE.section(), LITTLE.interface(1, 0, &[])];
    let packet = LITTLE.packet(0, 1, &[1; 61], &[]);
    let begin = blocks.concat().len();
    let pcapng = [blocks.concat(), packet.repeat(3)].concat();
    let step = packet.len();
    [(pcap, ends), (pcapng, vec![begin, begin + step, begin + 2 * step, begin + 3 * step])]
}

#[test]
fn a_file_cut_at_any_byte_gives_the_frames_before_the_cut_and_says_where_it_ends() {
    for (file, records) in files() {
        assert_eq!(file.len(), records[3]);
        for cut in 0..=file.len() {
            let (frames, end) = read(&file[..cut]);
            let whole = records.iter().filter(|&&end| end <= cut).count().saturating_sub(1);
            assert_eq!(frames.len(), whole, "{cut}");
            match end {
                None => assert!(records.contains(&cut) || cut == 28, "{cut}"),
                Some(ReadError::NotACapture) => assert!(cut < 24, "{cut}"),
                Some(ReadError::CutOff { frame, offset }) => {
                    assert_eq!(frame, whole as u64 + 1);
                    let begin = records.iter().rev().find(|&&begin| begin < cut);
                    assert!(begin.is_none_or(|&begin| begin as u64 == offset), "{cut}: {offset}");
                }
                Some(error) => panic!("{cut}: {error}"),
            }
        }
    }
}

#[test]
fn what_is_read_of_a_file_with_any_byte_changed_reads_the_same_when_it_is_written() {
    let mut random = oorandom::Rand64::new(5);
    for (file, _) in files() {
        for at in 0..file.len() {
            for value in [0, 0xff, file[at] ^ 1, file[at] ^ 0x80, random.rand_u64() as u8] {
                let mut altered = file.clone();
                altered[at] = value;
                check(&altered);
                check(&altered[..at]);
            }
        }
        check(&file);
    }
    check(&write(&several()));
}

/// Returns the error with which reading a file ends.
fn refusal(file: &[u8]) -> String {
    read(file).1.map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn lengths_that_no_file_has_are_refused_with_their_place() {
    for order in [LITTLE, BIG] {
        let mut pcap = order.pcap(NANOS, 65_535, &[(1, 2, 60, &[1; 60][..]); 2]);
        pcap[100 + 8..100 + 12].fill(0xff);
        let text = "at byte 100, where frame 2 is expected: a frame of 4294967295 bytes; expected \
                    at most 262144";
        assert_eq!(refusal(&pcap), text);
        let head = [order.section(), order.interface(1, 0, &[])].concat();
        let begin = head.len();
        let altered = |at: usize, value: u32| {
            let mut file = [&head[..], &order.packet(0, 1, &[1; 60], &[])].concat();
            file[begin + at..begin + at + 4].copy_from_slice(&order.words(&[value]));
            refusal(&file)
        };
        let at = format!("at byte {begin}, where frame 1 is expected: ");
        for (place, value, what) in [
            (4, u32::MAX - 3, "a block of 4294967292 bytes; expected at most 16777216"),
            (4, 8, "Block: initial_len < 12"),
            (4, 90, "Block: (initial_len % 4) != 0"),
            (20, u32::MAX, "EnhancedPacketBlock: captured_len + padding > block length"),
            (88, 96, "Block: initial_length != trailer_length"),
            (8, 1, "a frame of interface 1, of which 1 are described"),
        ] {
            assert_eq!(altered(place, value), format!("{at}{what}"));
        }
        let long = [&head[..], &order.packet(0, 1, &vec![1; FRAME_BYTES_MAX + 1], &[])].concat();
        assert_eq!(refusal(&long), format!("{at}a frame of 262145 bytes; expected at most 262144"));
    }
}

#[test]
fn interfaces_without_end_are_refused() {
    let many = LITTLE.interface(1, 0, &[]).repeat(65_537);
    let text = refusal(&[LITTLE.section(), many].concat());
    assert!(text.ends_with("one more interface; expected at most 65536"), "{text}");
}

#[test]
fn what_is_no_capture_is_refused() {
    for bytes in [&b"GIF89a"[..], b"", b"ab", &[0; 40], &LITTLE.pcap(MICROS, 0, &[])[..23]] {
        assert_eq!(refusal(bytes), "it is neither a pcap nor a pcapng file");
    }
    let mut file = LITTLE.section();
    file[12] = 2;
    let text = "at byte 0, where frame 1 is expected: a section of pcapng version 2; expected \
                version 1";
    assert_eq!(refusal(&file), text);
}

/// A file that is removed when the test ends.
struct TemporaryFile(std::path::PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns what a program prints about a file, or `None` if the program is missing and this is no
/// failure.
fn printed(program: &str, file: &TemporaryFile, arguments: &[&str]) -> Option<String> {
    if !needs::programs(&[program]) {
        return None;
    }
    let mut command = Command::new(program);
    let before: &[&str] = if program == "tshark" { &["-r"] } else { &[] };
    let output = command.args(before).arg(&file.0).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn others_read_what_we_write() {
    let name = format!("axon-capture-{}.pcapng", std::process::id());
    let file = TemporaryFile(std::env::temp_dir().join(name));
    // tshark cannot show times after the year 2262.
    let frames = &several()[..5];
    std::fs::write(&file.0, write(frames)).unwrap();
    let fields = [
        "frame.interface_name",
        "frame.encap_type",
        "frame.packet_flags_direction",
        "frame.time_epoch",
        "frame.len",
        "frame.cap_len",
    ];
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    if let Some(text) = printed("tshark", &file, &arguments) {
        // Wireshark has its own numbers for link types: Ethernet is 1, USER0 is 45.
        let expected = [
            "s1-p0|45|0x00000001|1700000000.123456789|60|60",
            "s1-p0|1|0x00000002|1700000000.123456790|61|61",
            "s1-p1|45|0x00000002|1700000000.223456789|1514|1514",
            "s1-p1|45|0x00000001|0.000000000|0|0",
            "s1-p0|45|0x00000001|0.000000005|63|63",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
    if let Some(text) = printed("capinfos", &file, &[]) {
        for said in ["Number of packets:   5", "Number of interfaces in file: 3", "nanoseconds (9)"]
        {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
