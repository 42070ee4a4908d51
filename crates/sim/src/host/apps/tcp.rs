//! How TCP behaves, and connections of the IP stack for those who read their payload.
//!
//! Requests, collectives, files and iSCSI read what comes, so their connections are smoltcp's: slow
//! start, congestion avoidance and fast retransmit (RFC 5681, Reno), and a retransmission timeout
//! of at least one second (RFC 6298 §2.4). Recovery by selective acknowledgments is the host's
//! (`tcp_recovery.rs`). smoltcp computes CUBIC in floating point and has no ECN, so these are Reno
//! where another algorithm is asked for. Streams have connections of `axon-tcp`
//! (`tcp_stream.rs`).

use crate::host::stack::Stack;
use axon_tcp::{Algorithm as Congestion, Config};
use axon_wire::Span;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::time::Duration;
use smoltcp::wire::IpAddress;
use std::net::Ipv4Addr;

/// Headers of IPv4 and TCP without options, in bytes.
const HEADER_BYTES: u16 = 40;
/// How long a connection answers a repeated FIN: the stack's figure.
const TIME_WAIT: Span = Span::from_secs(10);

/// How a connection behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Congestion control; connections of the IP stack have Reno or none.
    pub congestion: Congestion,
    /// Bytes of each of the buffers; that of the receiver bounds the window.
    pub buffer_bytes: usize,
    /// Whether small writes wait for an acknowledgement (RFC 896).
    pub nagle: bool,
    /// How long an acknowledgement may wait for a second segment (RFC 1122 clause 4.2.3.2);
    /// at once without.
    pub ack_delay: Option<Span>,
}

impl TcpOptions {
    /// The configuration of a connection of `axon-tcp`, in a network with this MTU.
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
    /// Reno, 128 KiB (10 Gb/s for 105 us, and no more than one ingress of a switch queues, so
    /// that a stream alone loses nothing), no Nagle, acknowledgements wait 1 ms.
    fn default() -> TcpOptions {
        TcpOptions {
            congestion: Congestion::Reno,
            buffer_bytes: 1 << 17,
            nagle: false,
            ack_delay: Some(Span::from_millis(1)),
        }
    }
}

/// A stream to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    /// To whom.
    pub target: Ipv4Addr,
    /// To which port there.
    pub port: u16,
    /// How many bytes; until it is stopped without.
    pub bytes: Option<u64>,
    /// How its connection behaves.
    pub options: TcpOptions,
}

/// A socket of these options.
pub(crate) fn socket(options: &TcpOptions) -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; options.buffer_bytes.max(2048)]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_congestion_control(match options.congestion {
        Congestion::None => tcp::CongestionControl::None,
        _ => tcp::CongestionControl::Reno,
    });
    socket.set_nagle_enabled(options.nagle);
    let micros = |span: Span| Duration::from_micros(span.as_nanos() / 1000);
    socket.set_ack_delay(options.ack_delay.map(micros));
    socket
}

/// Opens a connection if the way to the target is known; the socket and its local port.
pub(crate) fn connect(
    target: Ipv4Addr,
    port: u16,
    options: &TcpOptions,
    stack: &mut Stack,
) -> Option<(SocketHandle, u16)> {
    stack.way_to(target)?;
    let local = stack.ephemeral_port();
    let mut socket = socket(options);
    let context = stack.iface.context(&mut stack.nic);
    socket.connect(context, (IpAddress::Ipv4(target), port), local).ok()?;
    stack.has_sockets = true;
    Some((stack.sockets.add(socket), local))
}

/// Sockets that wait for connections and serve them: always one more than is connected.
pub(crate) struct Listener {
    port: u16,
    options: TcpOptions,
    waiting: Option<SocketHandle>,
    /// Those connected, in order of their beginning.
    pub(crate) open: Vec<SocketHandle>,
}

impl Listener {
    pub(crate) fn new(port: u16, options: TcpOptions, stack: &mut Stack) -> Listener {
        let mut listener = Listener { port, options, waiting: None, open: Vec::new() };
        listener.wait(stack);
        listener
    }

    fn wait(&mut self, stack: &mut Stack) {
        let mut socket = socket(&self.options);
        if socket.listen(self.port).is_ok() {
            stack.has_sockets = true;
            self.waiting = Some(stack.sockets.add(socket));
        }
    }

    /// Takes what has connected; forgets what has ended.
    pub(crate) fn poll(&mut self, stack: &mut Stack) {
        let listens =
            |handle| stack.sockets.get::<tcp::Socket>(handle).state() == tcp::State::Listen;
        if let Some(handle) = self.waiting.filter(|&handle| !listens(handle)) {
            self.open.push(handle);
            self.wait(stack);
        }
        self.open.retain(|&handle| {
            let open = stack.sockets.get::<tcp::Socket>(handle).is_open();
            if !open {
                stack.sockets.remove(handle);
            }
            open
        });
    }

    /// Ends every connection and listens no more.
    pub(crate) fn stop(&mut self, stack: &mut Stack) {
        for handle in self.open.iter().copied().chain(self.waiting.take()) {
            stack.sockets.get_mut::<tcp::Socket>(handle).abort();
        }
    }
}
