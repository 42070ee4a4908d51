//! Measured figures with their units.

use serde::Serialize;

/// Figures from one measurement.
pub type Figures = Vec<(Quantity, f64)>;

/// Measured figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Goodput of one TCP stream, in Gb/s.
    TcpOneStream,
    /// Goodput of four TCP streams together, in Gb/s.
    TcpFourStreams,
    /// Mean round trip of pings with 5 ms between them, in us.
    PingMean,
    /// Median round trip of pings with 5 ms between them, in us.
    PingMedian,
    /// 99th percentile of round trips of pings with 5 ms between them, in us.
    PingP99,
    /// Mean round trip of back-to-back pings, in us.
    FloodMean,
    /// Median round trip of back-to-back pings, in us.
    FloodMedian,
    /// 99th percentile of round trips of back-to-back pings, in us.
    FloodP99,
    /// Delivered 64-byte frames per second at the best offered rate, in kframes/s.
    PacketsPeak,
    /// Offered rate of a sender at full speed, or at ten times the peak, in multiples of the peak.
    OverloadOffered,
    /// Delivered rate under that overload, in multiples of the peak.
    OverloadDelivered,
    /// CPU time of sender and switches per delivered frame at the peak, in ns.
    CpuPerPacket,
    /// Time between two frames at the peak added by one more switch, in ns.
    PacketsPerHop,
    /// CPU time per frame added by one more switch, in ns.
    CpuPerHop,
    /// Fraction of the bytes of a TCP stream over IPv6 that arrived unaltered.
    IntactTcpIpv6,
    /// Fraction of the datagrams of UDP super-packets that arrived unaltered.
    IntactUdpGso,
    /// Goodput of the port with 8 TCP streams at an egress of 200 Mb/s, in multiples of that of the
    /// port with 1 stream.
    SharesTwoHundredMbps,
    /// Total goodput of both ports at the egress of 200 Mb/s, in Mb/s.
    TotalTwoHundredMbps,
    /// Goodput of the port with 8 TCP streams at an egress of 1 Gb/s, in multiples of that of the
    /// port with 1 stream.
    SharesOneGbps,
    /// Total goodput of both ports at the egress of 1 Gb/s, in Mb/s.
    TotalOneGbps,
}

/// Preferred direction of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// Nearer to one is better.
    One,
}

impl Quantity {
    /// All figures, in the order in which the table has them.
    pub(crate) const ALL: [Quantity; 20] = [
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

    /// Returns the label of the figure in the table.
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

    /// Returns the unit of the figure. For fractions and multiples, it is the reference.
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

    /// Returns the preferred direction of the figure.
    pub(crate) const fn better(self) -> Better {
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

    /// Returns whether the figure is compared with bridges. It is if it is a time or a rate.
    pub(crate) const fn is_compared(self) -> bool {
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
