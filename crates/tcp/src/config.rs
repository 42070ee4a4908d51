//! How a connection behaves.

use axon_wire::Span;

/// What decides how much may be in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Only the receiver's window and the sender's buffer.
    None,
    /// Slow start and congestion avoidance (RFC 5681, RFC 6582).
    #[default]
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// DCTCP (RFC 8257); as Reno where the peer has no ECN.
    Dctcp,
}

/// How one end of a connection behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of payload in a segment, at most; also what is advertised (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Bytes that may be in flight or wait to be sent.
    pub send_buffer: u32,
    /// Bytes of the receiver's window, at most 1 GiB (RFC 7323 §2.3).
    pub receive_buffer: u32,
    /// Congestion control.
    pub congestion: Algorithm,
    /// Whether ECN is offered and accepted (RFC 3168); always with DCTCP.
    pub ecn: bool,
    /// Whether selective acknowledgements are offered and accepted (RFC 2018).
    pub sack: bool,
    /// Whether a small segment waits while others are in flight (RFC 896).
    pub nagle: bool,
    /// How long an acknowledgement may wait for a second segment (RFC 9293 §3.8.6.3, at most half
    /// a second); at once without. The peer is taken to wait as long.
    pub ack_delay: Option<Span>,
    /// The retransmission timeout before there is a round trip (RFC 6298 §2.1).
    pub rto_initial: Span,
    /// The shortest retransmission timeout: 200 ms in Linux, 1 s in RFC 6298 §2.4.
    pub rto_min: Span,
    /// The longest retransmission timeout (RFC 6298 §2.5).
    pub rto_max: Span,
    /// The shortest time before a tail loss probe (RFC 8985 §7.2): two of its clock's ticks in
    /// Linux.
    pub probe_min: Span,
    /// Timeouts in a row after which the connection is given up (RFC 9293 §3.8.3).
    pub retries: u8,
    /// How long the end that closed first answers a repeated FIN (RFC 9293 §3.6.1).
    pub time_wait: Span,
}

impl Default for Config {
    /// What Linux has, where it has a figure: 1,460 bytes, timeouts of 200 ms to 120 s, 15 of them,
    /// acknowledgements wait 40 ms, a minute of TIME-WAIT. Buffers of 128 KiB.
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
    /// Whether ECN is wanted.
    pub(crate) fn wants_ecn(&self) -> bool {
        self.ecn || self.congestion == Algorithm::Dctcp
    }

    /// Bytes of the receiver's window: at least one, so that something can arrive.
    pub(crate) fn window(&self) -> u32 {
        self.receive_buffer.clamp(1, 1 << 30)
    }
}
