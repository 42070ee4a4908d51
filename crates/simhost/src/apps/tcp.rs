//! TCP options of connections, and the plan of a byte stream.

use axon_tcp::{Algorithm as Congestion, Config};
use axon_wire::Span;
use std::net::Ipv4Addr;

/// Length of the IPv4 and TCP headers without options, in bytes.
const HEADER_BYTES: u16 = 40;
/// Duration of TIME-WAIT: short, so that few connections wait in it.
const TIME_WAIT: Span = Span::from_secs(10);

/// TCP options of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Congestion control.
    pub congestion: Congestion,
    /// Size of each buffer in bytes; the receive buffer bounds the window.
    pub buffer_bytes: usize,
    /// True if small writes wait for an acknowledgement (RFC 896).
    pub nagle: bool,
    /// Maximum delay of an acknowledgement that waits for a second segment (RFC 1122 clause
    /// 4.2.3.2); `None` acknowledges at once.
    pub ack_delay: Option<Span>,
}

impl TcpOptions {
    /// Returns the configuration of a connection in a network with this MTU.
    pub(crate) fn config(&self, mtu: u16) -> Config {
        let buffer = u32::try_from(self.buffer_bytes).unwrap_or(u32::MAX);
        Config {
            mss: mtu.saturating_sub(HEADER_BYTES),
            send_buffer: buffer,
            receive_buffer: buffer,
            congestion: self.congestion,
            nagle: self.nagle,
            ack_delay: self.ack_delay,
            time_wait: TIME_WAIT,
            ..Config::default()
        }
    }
}

impl Default for TcpOptions {
    /// Returns Reno, 128 KiB buffers, no Nagle, and an acknowledgement delay of 1 ms. The buffer is
    /// 105 us at 10 Gb/s and no more than one switch ingress queues, so a single stream loses
    /// nothing.
    fn default() -> TcpOptions {
        TcpOptions {
            congestion: Congestion::Reno,
            buffer_bytes: 1 << 17,
            nagle: false,
            ack_delay: Some(Span::from_millis(1)),
        }
    }
}

/// Byte stream to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    /// Target address.
    pub target: Ipv4Addr,
    /// Target port.
    pub port: u16,
    /// Number of bytes; `None` runs until stopped.
    pub bytes: Option<u64>,
    /// TCP options of the connection.
    pub options: TcpOptions,
}
