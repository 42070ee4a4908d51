//! One end of an iSCSI connection: the queue of outgoing PDUs, and the PDU being received.

use super::super::FlowStats;
use super::Work;
use super::pdu::{HEADER_BYTES, Pdu};
use axon_wire::{Bytes, Time};
use smoltcp::socket::tcp;
use std::collections::VecDeque;

/// PDU that is queued or being sent.
#[derive(Debug)]
struct Outgoing {
    header: [u8; HEADER_BYTES],
    /// Bytes of header and data, followed by those already passed to the stack.
    bytes: usize,
    sent: usize,
    data: u32,
}

/// One end of a connection.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    tx: VecDeque<Outgoing>,
    header: Vec<u8>,
    /// PDU being received, and its data bytes still missing.
    rx: Option<(Pdu, u32)>,
    /// True if the peer has sent an unknown PDU.
    pub(super) is_broken: bool,
}

impl Exchange {
    /// Queues a PDU.
    pub(super) fn send(&mut self, pdu: Pdu) {
        let bytes = HEADER_BYTES + pdu.padded() as usize;
        let data = pdu.data();
        self.tx.push_back(Outgoing { header: pdu.emit(), bytes, sent: 0, data });
    }

    /// Passes as much as possible to the socket. Returns whether any bytes were passed. The
    /// processor handles a PDU before its first byte is sent.
    pub(super) fn write(
        &mut self,
        now: Time,
        socket: &mut tcp::Socket<'_>,
        (work, stats): (&mut Work, &mut FlowStats),
    ) -> bool {
        let mut more = false;
        while let Some(next) = self.tx.front_mut().filter(|_| socket.can_send()) {
            if next.sent == 0 {
                if !work.is_free(now) {
                    break;
                }
                work.take(now, 1, next.data.into());
            }
            let (sent, left) = (next.sent, next.bytes - next.sent);
            let wrote = socket.send(|room| {
                let count = room.len().min(left);
                // The bytes after the header are arbitrary.
                if let Some(header) = next.header.get(sent..) {
                    let header = &header[..header.len().min(count)];
                    room[..header.len()].copy_from_slice(header);
                }
                (count, count)
            });
            let Ok(wrote @ 1..) = wrote else { break };
            stats.count_sent(now, wrote);
            next.sent += wrote;
            if next.sent == next.bytes {
                self.tx.pop_front();
            }
            more = true;
        }
        more
    }

    /// Reads while the processor is free, until a PDU is complete. Returns whether anything was
    /// read, and the PDU. Only data counts as received.
    pub(super) fn read(
        &mut self,
        now: Time,
        socket: &mut tcp::Socket<'_>,
        (work, stats): (&mut Work, &mut FlowStats),
    ) -> (bool, Option<Pdu>) {
        let mut more = false;
        while !self.is_broken && work.is_free(now) {
            if let Some((pdu, 0)) = self.rx {
                self.rx = None;
                return (true, Some(pdu));
            }
            if !socket.can_recv() {
                break;
            }
            let wanted = match self.rx {
                Some((_, left)) => left as usize,
                None => HEADER_BYTES - self.header.len(),
            };
            let header = self.rx.is_none().then_some(&mut self.header);
            let read = socket.recv(|bytes| {
                let count = bytes.len().min(wanted);
                if let Some(header) = header {
                    header.extend_from_slice(&bytes[..count]);
                }
                (count, count)
            });
            let Ok(count @ 1..) = read else { break };
            more = true;
            self.took(now, count as u32, (work, stats));
        }
        (more, None)
    }

    /// Counts bytes that were read.
    fn took(&mut self, now: Time, count: u32, (work, stats): (&mut Work, &mut FlowStats)) {
        if let Some((_, left)) = &mut self.rx {
            *left -= count;
            work.take(now, 0, count.into());
            stats.received.count(now, count as usize, None);
            return;
        }
        if let Ok(header) = <&[u8; HEADER_BYTES]>::try_from(self.header.as_slice()) {
            work.take(now, 1, 0);
            self.rx = Pdu::parse(header).map(|pdu| (pdu, pdu.padded()));
            self.is_broken = self.rx.is_none();
            self.header.clear();
        }
    }

    /// Returns the bytes queued for the socket.
    pub(super) fn waiting(&self) -> Bytes {
        Bytes(self.tx.iter().map(|next| (next.bytes - next.sent) as u64).sum())
    }
}
