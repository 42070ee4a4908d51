//! Configuration of a connection.

use axon_wire::Span;

/// Congestion control algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// No congestion control: only the receiver's window and the send buffer limit the flight size.
    None,
    /// Slow start and congestion avoidance (RFC 5681, RFC 6582).
    #[default]
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// DCTCP (RFC 8257); Reno if the peer does not support ECN.
    Dctcp,
}

/// Configuration of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum segment size, in bytes of payload; also the advertised MSS (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Send buffer, in bytes, for data in flight and data not yet sent.
    pub send_buffer: u32,
    /// Receive window, in bytes, at most 1 GiB (RFC 7323 §2.3).
    pub receive_buffer: u32,
    /// Congestion control algorithm.
    pub congestion: Algorithm,
    /// True if ECN is offered and accepted (RFC 3168); always with DCTCP.
    pub ecn: bool,
    /// True if selective acknowledgements are offered and accepted (RFC 2018).
    pub sack: bool,
    /// True if a small segment waits while others are in flight (RFC 896).
    pub nagle: bool,
    /// Maximum delay of an acknowledgement that waits for a second segment, at most 500 ms (RFC
    /// 9293 §3.8.6.3). `None` acknowledges at once. The peer is assumed to use the same delay.
    pub ack_delay: Option<Span>,
    /// Retransmission timeout before the first round-trip sample (RFC 6298 §2.1).
    pub rto_initial: Span,
    /// Minimum retransmission timeout: 200 ms in Linux, 1 s in RFC 6298 §2.4.
    pub rto_min: Span,
    /// Maximum retransmission timeout (RFC 6298 §2.5).
    pub rto_max: Span,
    /// Minimum time before a tail loss probe (RFC 8985 §7.2): two clock ticks in Linux.
    pub probe_min: Span,
    /// Consecutive timeouts after which the connection is aborted (RFC 9293 §3.8.3).
    pub retries: u8,
    /// Duration of TIME-WAIT, in which a repeated FIN is answered (RFC 9293 §3.6.1).
    pub time_wait: Span,
}

impl Default for Config {
    /// Returns the Linux values where Linux defines them: an MSS of 1,460 bytes, timeouts of 200 ms
    /// to 120 s, 15 retries, an acknowledgement delay of 40 ms, 60 s of TIME-WAIT. Buffers are 128
    /// KiB.
    fn default() -> Config {
        Config {
            mss: 1460,
            send_buffer: 1 << 17,
            receive_buffer: 1 << 17,
            congestion: Algorithm::Reno,
            ecn: false,
            sack: true,
            nagle: false,
            ack_delay: Some(Span::from_millis(40)),
            rto_initial: Span::from_secs(1),
            rto_min: Span::from_millis(200),
            rto_max: Span::from_secs(120),
            probe_min: Span::from_millis(2),
            retries: 15,
            time_wait: Span::from_secs(60),
        }
    }
}

impl Config {
    /// Returns whether ECN is enabled, by the option or by DCTCP.
    pub(crate) fn wants_ecn(&self) -> bool {
        self.ecn || self.congestion == Algorithm::Dctcp
    }

    /// Returns the receive window in bytes, from 1 byte to 1 GiB.
    pub(crate) fn window(&self) -> u32 {
        self.receive_buffer.clamp(1, 1 << 30)
    }
}
