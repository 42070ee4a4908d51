//! The figures that are taken, with their units.

use serde::Serialize;

/// Figures of one measurement.
pub type Figures = Vec<(Quantity, f64)>;

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Goodput of one TCP stream, in Gb/s.
    TcpOneStream,
    /// Goodput of four TCP streams together, in Gb/s.
    TcpFourStreams,
    /// Mean round trip of pings with 5 ms between them, in us.
    PingMean,
    /// Median round trip of the same, in us.
    PingMedian,
    /// The round trip that 99 % of the same do not exceed, in us.
    PingP99,
    /// Mean round trip of pings each of which follows the reply to the one before, in us.
    FloodMean,
    /// Median round trip of the same, in us.
    FloodMedian,
    /// The round trip that 99 % of the same do not exceed, in us.
    FloodP99,
    /// Frames of 64 bytes that arrive a second at the best offered rate, in kframes/s.
    PacketsPeak,
    /// What a sender at full speed, or at ten times the peak, offers: in multiples of the peak.
    OverloadOffered,
    /// What arrives of that overload: in multiples of the peak.
    OverloadDelivered,
    /// CPU time of sender and switches for each frame that arrives at the peak, in ns.
    CpuPerPacket,
    /// What one more switch adds to the time between two frames at the peak, in ns.
    PacketsPerHop,
    /// What one more switch adds to that CPU time, in ns.
    CpuPerHop,
    /// Of the bytes of a TCP stream over IPv6, the fraction that arrived, and as they were sent.
    IntactTcpIpv6,
    /// Of the datagrams of UDP super-packets, the fraction that arrived, and as they were sent.
    IntactUdpGso,
    /// What the port with 8 TCP streams gets of an egress of 200 Mb/s, in multiples of what the
    /// port with 1 stream gets.
    SharesTwoHundredMbps,
    /// What both ports get together of that egress, in Mb/s.
    TotalTwoHundredMbps,
    /// The same multiple for an egress of 1 Gb/s.
    SharesOneGbps,
    /// What both ports get together of that one, in Mb/s.
    TotalOneGbps,
}

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The more the better.
    More,
    /// The less the better.
    Less,
    /// The nearer to one the better.
    One,
}

impl Quantity {
    /// All of them, in the order of the table.
    pub const ALL: [Quantity; 20] = [
        Quantity::TcpOneStream,
        Quantity::TcpFourStreams,
        Quantity::PingMean,
        Quantity::PingMedian,
        Quantity::PingP99,
        Quantity::FloodMean,
        Quantity::FloodMedian,
        Quantity::FloodP99,
        Quantity::PacketsPeak,
        Quantity::OverloadOffered,
        Quantity::OverloadDelivered,
        Quantity::CpuPerPacket,
        Quantity::PacketsPerHop,
        Quantity::CpuPerHop,
        Quantity::IntactTcpIpv6,
        Quantity::IntactUdpGso,
        Quantity::SharesTwoHundredMbps,
        Quantity::TotalTwoHundredMbps,
        Quantity::SharesOneGbps,
        Quantity::TotalOneGbps,
    ];

    /// In the table.
    pub const fn label(self) -> &'static str {
        match self {
            Quantity::TcpOneStream => "TCP, 1 stream",
            Quantity::TcpFourStreams => "TCP, 4 streams",
            Quantity::PingMean => "ping, mean",
            Quantity::PingMedian => "ping, median",
            Quantity::PingP99 => "ping, 99 %",
            Quantity::FloodMean => "flood ping, mean",
            Quantity::FloodMedian => "flood ping, median",
            Quantity::FloodP99 => "flood ping, 99 %",
            Quantity::PacketsPeak => "64 B frames, peak",
            Quantity::OverloadOffered => "overload, offered",
            Quantity::OverloadDelivered => "overload, delivered",
            Quantity::CpuPerPacket => "CPU per frame",
            Quantity::PacketsPerHop => "time per hop",
            Quantity::CpuPerHop => "CPU per hop",
            Quantity::IntactTcpIpv6 => "IPv6 TCP intact",
            Quantity::IntactUdpGso => "UDP GSO intact",
            Quantity::SharesTwoHundredMbps => "8 against 1 at 200 Mb/s",
            Quantity::SharesOneGbps => "8 against 1 at 1 Gb/s",
            Quantity::TotalTwoHundredMbps => "both at 200 Mb/s",
            Quantity::TotalOneGbps => "both at 1 Gb/s",
        }
    }

    /// Its unit; of fractions and multiples, of what.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::TcpOneStream | Quantity::TcpFourStreams => "Gb/s",
            Quantity::PingMean | Quantity::PingMedian | Quantity::PingP99 => "us",
            Quantity::FloodMean | Quantity::FloodMedian | Quantity::FloodP99 => "us",
            Quantity::PacketsPeak => "kframes/s",
            Quantity::OverloadOffered | Quantity::OverloadDelivered => "x peak",
            Quantity::CpuPerPacket | Quantity::PacketsPerHop | Quantity::CpuPerHop => "ns",
            Quantity::IntactTcpIpv6 | Quantity::IntactUdpGso => "of all",
            Quantity::SharesTwoHundredMbps | Quantity::SharesOneGbps => "x",
            Quantity::TotalTwoHundredMbps | Quantity::TotalOneGbps => "Mb/s",
        }
    }

    /// Which way it is better.
    pub const fn better(self) -> Better {
        match self {
            Quantity::TcpOneStream | Quantity::TcpFourStreams | Quantity::PacketsPeak => {
                Better::More
            }
            Quantity::OverloadOffered | Quantity::OverloadDelivered => Better::More,
            Quantity::IntactTcpIpv6 | Quantity::IntactUdpGso => Better::More,
            Quantity::SharesTwoHundredMbps | Quantity::SharesOneGbps => Better::One,
            Quantity::TotalTwoHundredMbps | Quantity::TotalOneGbps => Better::More,
            _ => Better::Less,
        }
    }

    /// Whether it is compared with bridges: a time or a rate.
    pub const fn is_compared(self) -> bool {
        matches!(
            self,
            Quantity::TcpOneStream
                | Quantity::TcpFourStreams
                | Quantity::PingMean
                | Quantity::FloodMean
                | Quantity::PacketsPeak
                | Quantity::CpuPerPacket
                | Quantity::PacketsPerHop
                | Quantity::CpuPerHop
        )
    }
}
