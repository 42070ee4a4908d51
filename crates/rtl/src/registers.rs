//! Register map of the device in gates: made by `rtl/registers.py` from `rtl/registers.toml`; do
//! not edit.
//!
//! Addresses count 32-bit words. The block of the device begins at 0, that of port `p` at
//! [`port_block`]; offsets are within a block.

/// Register of the device or of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Name in messages.
    pub name: &'static str,
    /// Offset in its block, in words.
    pub offset: u16,
    /// Least value.
    pub min: u32,
    /// Largest value.
    pub max: u32,
    /// Value after reset if the register can be written.
    pub default: Option<u32>,
}

/// Field of a word, or part of the number of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in messages.
    pub name: &'static str,
    /// Number of its lowest bit.
    pub shift: u8,
    /// Largest value; the least is 0.
    pub max: u32,
}

/// Table of a port, write-only, with one word for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name in messages.
    pub name: &'static str,
    /// Offset of element 0 in the block of the port, in words.
    pub offset: u16,
    /// Number of elements.
    pub length: u16,
    /// Parts of the number of an element.
    pub index: &'static [Field],
    /// Fields of an element.
    pub fields: &'static [Field],
}

/// Counter of a port, or of the CPU in the block of the device: 32 bits, which wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name in messages.
    pub name: &'static str,
    /// Offset in the block of the port, in words.
    pub offset: u16,
    /// Number of the reason if it counts drops.
    pub drop: Option<u8>,
    /// Number of the reason if it counts punts.
    pub punt: Option<u8>,
}

const fn field(name: &'static str, shift: u8, max: u32) -> Field {
    Field { name, shift, max }
}

/// Words of a block.
pub const BLOCK: u16 = 0x1000;

/// Largest number of ports of a device.
pub const PORTS_MAX: u16 = 15;

/// Returns the address of the block of `port`.
pub const fn port_block(port: u16) -> u16 {
    (port + 1) * BLOCK
}

/// Registers of the device.
pub mod device {
    use super::Register;

    /// "AXON" in ASCII, most significant byte first.
    pub const MAGIC: Register = Register {
        name: "magic",
        offset: 0x000,
        min: 0x4158_4f4e,
        max: 0x4158_4f4e,
        default: None,
    };

    /// Version of this map.
    pub const VERSION: Register =
        Register { name: "version", offset: 0x001, min: 2, max: 2, default: None };

    /// Number of ports.
    pub const PORTS: Register =
        Register { name: "ports", offset: 0x002, min: 1, max: 15, default: None };

    /// Width of a hop in an Axon header, in bits: 4, 8 or 16.
    pub const HOP_BITS: Register =
        Register { name: "hop_bits", offset: 0x003, min: 4, max: 16, default: None };

    /// Size of each buffer, in symbols: a frame takes one for each byte and one for its end.
    pub const BUFFER_BYTES: Register =
        Register { name: "buffer_bytes", offset: 0x004, min: 1024, max: 65_536, default: None };

    /// Entries of the route table of each port: 4, 8, 16 or 32.
    pub const ROUTES: Register =
        Register { name: "routes", offset: 0x005, min: 4, max: 32, default: None };

    /// High half of the time that probes are stamped with, in units of 10 ps; takes effect with the
    /// next write of `time_low`.
    pub const TIME_HIGH: Register =
        Register { name: "time_high", offset: 0x006, min: 0, max: 0xffff_ffff, default: Some(0) };

    /// Low half of the time; both grow by 800 in each cycle of 8 ns. 0 without probe units.
    pub const TIME_LOW: Register =
        Register { name: "time_low", offset: 0x007, min: 0, max: 0xffff_ffff, default: Some(0) };

    /// All of them, in order.
    pub const ALL: &[Register] =
        &[MAGIC, VERSION, PORTS, HOP_BITS, BUFFER_BYTES, ROUTES, TIME_HIGH, TIME_LOW];
}

/// Registers of a port.
pub mod port {
    use super::Register;

    /// Kind of the peer.
    pub const KIND: Register =
        Register { name: "kind", offset: 0x000, min: 0, max: 2, default: Some(0) };

    /// Value of [`KIND`]: unknown.
    pub const KIND_UNKNOWN: u32 = 0;

    /// Value of [`KIND`]: host.
    pub const KIND_HOST: u32 = 1;

    /// Value of [`KIND`]: axon.
    pub const KIND_AXON: u32 = 2;

    /// 1 while the port has carrier.
    pub const UP: Register = Register { name: "up", offset: 0x001, min: 0, max: 1, default: None };

    /// 1 if frames received here leave only when they are whole and good.
    pub const IS_STORED: Register =
        Register { name: "is_stored", offset: 0x002, min: 0, max: 1, default: Some(0) };

    /// Value of [`IS_STORED`]: cut-through.
    pub const IS_STORED_CUT_THROUGH: u32 = 0;

    /// Value of [`IS_STORED`]: stored.
    pub const IS_STORED_STORED: u32 = 1;

    /// Longest frame of a host, in bytes without FCS.
    pub const FRAME_BYTES_MAX: Register = Register {
        name: "frame_bytes_max",
        offset: 0x003,
        min: 64,
        max: 9216,
        default: Some(1514),
    };

    /// Longest frame that is let in, Axon header included, in bytes without FCS; more is cut off.
    pub const BYTES_MAX: Register =
        Register { name: "bytes_max", offset: 0x004, min: 64, max: 16_383, default: Some(1642) };

    /// Longest Axon header that is accepted, in bytes.
    pub const ROUTE_BYTES_MAX: Register = Register {
        name: "route_bytes_max",
        offset: 0x005,
        min: 6,
        max: 16_383,
        default: Some(128),
    };

    /// Bit e is 1 if entry e of the route table takes part in lookups.
    pub const VALID: Register =
        Register { name: "valid", offset: 0x006, min: 0, max: 0xffff_ffff, default: Some(0) };

    /// Bit e is 1 if entry e is for one source, and so wins over entries for any source.
    pub const BY_SOURCE: Register =
        Register { name: "by_source", offset: 0x007, min: 0, max: 0xffff_ffff, default: Some(0) };

    /// 1 if ARP and IPv6 neighbour discovery received here go to the CPU as misses, with or without
    /// a route.
    pub const PUNTS_RESOLUTION: Register =
        Register { name: "punts_resolution", offset: 0x008, min: 0, max: 1, default: Some(0) };

    /// All of them, in order.
    pub const ALL: &[Register] = &[
        KIND,
        UP,
        IS_STORED,
        FRAME_BYTES_MAX,
        BYTES_MAX,
        ROUTE_BYTES_MAX,
        VALID,
        BY_SOURCE,
        PUNTS_RESOLUTION,
    ];
}

/// Tables of a port.
pub mod table {
    use super::{Table, field};

    /// Action of an entry of the route table.
    pub const ATTRIBUTES: Table = Table {
        name: "attributes",
        offset: 0x080,
        length: 32,
        index: &[field("entry", 0, 31)],
        fields: &[
            field("to", 0, 15),
            field("header_bytes", 4, 31),
            field("priority", 9, 7),
            field("rewrites_destination", 12, 1),
        ],
    };

    /// Bytes of an entry: the header as it leaves from byte 0, another destination in bytes 24 to
    /// 29.
    pub const MEMORY: Table = Table {
        name: "memory",
        offset: 0x400,
        length: 1024,
        index: &[field("entry", 5, 31), field("byte", 0, 31)],
        fields: &[field("data", 0, 255)],
    };

    /// Rows of the lookup: the entries that accept `nibble` as the low (`is_low` = 1) or high half
    /// of byte `position` of a frame, which begins with its two addresses. After a power cycle rows
    /// are undefined.
    pub const ROW: Table = Table {
        name: "row",
        offset: 0x800,
        length: 512,
        index: &[field("is_low", 8, 1), field("position", 4, 11), field("nibble", 0, 15)],
        fields: &[field("entries", 0, 0xffff_ffff)],
    };

    /// All of them, in order.
    pub const ALL: &[Table] = &[ATTRIBUTES, MEMORY, ROW];
}

/// Counters of a port.
pub mod counter {
    use super::Counter;

    /// Frames received, bad ones included, runts not.
    pub const RX_FRAMES: Counter =
        Counter { name: "rx_frames", offset: 0x040, drop: None, punt: None };

    /// Bytes of these frames, without FCS.
    pub const RX_BYTES: Counter =
        Counter { name: "rx_bytes", offset: 0x041, drop: None, punt: None };

    /// Frames sent, poisoned ones included.
    pub const TX_FRAMES: Counter =
        Counter { name: "tx_frames", offset: 0x042, drop: None, punt: None };

    /// Bytes of these frames, without FCS.
    pub const TX_BYTES: Counter =
        Counter { name: "tx_bytes", offset: 0x043, drop: None, punt: None };

    /// Frames of fewer than 64 bytes, with FCS, received; each also ends as a drop or poisoned.
    pub const RUNTS: Counter = Counter { name: "runts", offset: 0x044, drop: None, punt: None };

    /// Carrier events without a start of frame delimiter.
    pub const NO_START: Counter =
        Counter { name: "no_start", offset: 0x045, drop: None, punt: None };

    /// Bad frames sent, with a wrong FCS: they had begun to leave when their error was seen.
    pub const POISONED: Counter =
        Counter { name: "poisoned", offset: 0x046, drop: None, punt: None };

    /// Frames received and dropped: no valid Axon header, or shorter than it, or no Ethernet frame.
    pub const MALFORMED: Counter =
        Counter { name: "malformed", offset: 0x047, drop: Some(0), punt: None };

    /// Frames received and dropped: wrong FCS or a receive error.
    pub const BAD_FCS: Counter =
        Counter { name: "bad_fcs", offset: 0x048, drop: Some(1), punt: None };

    /// Frames received and dropped: longer than `frame_bytes_max` or `bytes_max`.
    pub const OVERSIZED: Counter =
        Counter { name: "oversized", offset: 0x049, drop: Some(2), punt: None };

    /// Frames received and dropped: the buffer at their output was full.
    pub const QUEUE_FULL: Counter =
        Counter { name: "queue_full", offset: 0x04a, drop: Some(3), punt: None };

    /// Frames received and dropped: their output had no carrier.
    pub const PORT_DOWN: Counter =
        Counter { name: "port_down", offset: 0x04b, drop: Some(7), punt: None };

    /// Frames received and dropped: the kind of this port is unknown.
    pub const PORT_UNKNOWN: Counter =
        Counter { name: "port_unknown", offset: 0x04c, drop: Some(8), punt: None };

    /// Frames received and dropped: the next hop is no port of the device.
    pub const NO_SUCH_PORT: Counter =
        Counter { name: "no_such_port", offset: 0x04d, drop: Some(9), punt: None };

    /// MAC control frames received.
    pub const MAC_CONTROL: Counter =
        Counter { name: "mac_control", offset: 0x04e, drop: Some(12), punt: None };

    /// Frames received and dropped: Axon header longer than `route_bytes_max`.
    pub const ROUTE_TOO_LONG: Counter =
        Counter { name: "route_too_long", offset: 0x04f, drop: Some(22), punt: None };

    /// Frames received and dropped: the kind of their output is unknown.
    pub const EGRESS_UNKNOWN: Counter =
        Counter { name: "egress_unknown", offset: 0x050, drop: Some(24), punt: None };

    /// Frames received and sent to the CPU: a frame of a host without a route.
    pub const MISS: Counter = Counter { name: "miss", offset: 0x051, drop: None, punt: Some(0) };

    /// Frames received and sent to the CPU: their route ends there.
    pub const ADDRESSED: Counter =
        Counter { name: "addressed", offset: 0x052, drop: None, punt: Some(1) };

    /// Frames received and sent to the CPU: they could not be forwarded.
    pub const ERROR: Counter = Counter { name: "error", offset: 0x053, drop: None, punt: Some(2) };

    /// Frames received and sent to the CPU: to a link-local address.
    pub const LINK_LOCAL: Counter =
        Counter { name: "link_local", offset: 0x054, drop: None, punt: Some(3) };

    /// All of them, in order.
    pub const ALL: &[Counter] = &[
        RX_FRAMES,
        RX_BYTES,
        TX_FRAMES,
        TX_BYTES,
        RUNTS,
        NO_START,
        POISONED,
        MALFORMED,
        BAD_FCS,
        OVERSIZED,
        QUEUE_FULL,
        PORT_DOWN,
        PORT_UNKNOWN,
        NO_SUCH_PORT,
        MAC_CONTROL,
        ROUTE_TOO_LONG,
        EGRESS_UNKNOWN,
        MISS,
        ADDRESSED,
        ERROR,
        LINK_LOCAL,
    ];
}
