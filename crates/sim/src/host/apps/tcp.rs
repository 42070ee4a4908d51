//! TCP options, and connections of the IP stack for applications that read their payload.
//!
//! Requests, collectives, files and iSCSI read their payload, so they use smoltcp connections: slow
//! start, congestion avoidance and fast retransmit (RFC 5681, Reno), and a retransmission timeout
//! of at least one second (RFC 6298 §2.4). The host adds recovery by selective acknowledgments
//! (`tcp_recovery.rs`). smoltcp computes CUBIC in floating point and lacks ECN, so Reno replaces
//! every other algorithm here. Streams use `axon-tcp` connections (`tcp_stream.rs`).

use crate::host::stack::Stack;
use axon_tcp::{Algorithm as Congestion, Config};
use axon_wire::Span;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::time::Duration;
use smoltcp::wire::IpAddress;
use std::net::Ipv4Addr;

/// Length of the IPv4 and TCP headers without options, in bytes.
const HEADER_BYTES: u16 = 40;
/// Duration of TIME-WAIT, as in the stack.
const TIME_WAIT: Span = Span::from_secs(10);

/// TCP options of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Congestion control; connections of the IP stack use Reno or none.
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
    /// Returns the configuration of an `axon-tcp` connection in a network with this MTU.
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

/// Returns a socket with these options.
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

/// Opens a connection if the target's MAC is known. Returns the socket and its local port.
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

/// Listening sockets that also serve connections: always one more than there are connections.
pub(crate) struct Listener {
    port: u16,
    options: TcpOptions,
    waiting: Option<SocketHandle>,
    /// Connected sockets, in the order of connection.
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

    /// Accepts new connections and removes closed ones.
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

    /// Closes every connection and stops listening.
    pub(crate) fn stop(&mut self, stack: &mut Stack) {
        for handle in self.open.iter().copied().chain(self.waiting.take()) {
            stack.sockets.get_mut::<tcp::Socket>(handle).abort();
        }
    }
}
