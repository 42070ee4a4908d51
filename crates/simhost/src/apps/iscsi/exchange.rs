//! One end of an iSCSI connection: the queue of outgoing PDUs, and the PDU being received.

use super::super::FlowStats;
use super::Work;
use super::pdu::{HEADER_BYTES, Pdu};
use axon_tcp::Socket;
use axon_wire::{Bytes, Time};
use std::collections::VecDeque;

/// PDU that is queued or being sent.
#[derive(Debug)]
struct Outgoing {
    header: [u8; HEADER_BYTES],
    /// Bytes of header and data, followed by those already written to the socket.
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

    /// Writes as much as possible to the socket. The processor handles a PDU
    /// before its first byte is sent.
    pub(super) fn write(
        &mut self,
        now: Time,
        socket: &mut Socket,
        (work, stats): (&mut Work, &mut FlowStats),
    ) {
        let has_room = |socket: &Socket| socket.may_send() && socket.connection.room() > 0;
        while let Some(next) = self.tx.front_mut().filter(|_| has_room(socket)) {
            if next.sent == 0 {
                if !work.is_free(now) {
                    break;
                }
                work.take(now, 1, next.data.into());
            }
            // The bytes after the header are arbitrary.
            let header = next.header.get(next.sent..).unwrap_or(&[]);
            let wrote = socket.write(header, (next.bytes - next.sent) as u64) as usize;
            if wrote == 0 {
                break;
            }
            stats.count_sent(now, wrote);
            next.sent += wrote;
            if next.sent == next.bytes {
                self.tx.pop_front();
            }
        }
    }

    /// Reads while the processor is free, until a PDU is complete. Returns the PDU. Only data
    /// counts as received.
    pub(super) fn read(
        &mut self,
        now: Time,
        socket: &mut Socket,
        (work, stats): (&mut Work, &mut FlowStats),
    ) -> Option<Pdu> {
        while !self.is_broken && work.is_free(now) {
            if let Some((pdu, 0)) = self.rx {
                self.rx = None;
                return Some(pdu);
            }
            let count = match self.rx {
                Some((_, left)) => socket.skip(left.into()).0,
                None => {
                    let left = HEADER_BYTES - self.header.len();
                    socket.read(left as u64, &mut self.header)
                }
            };
            if count == 0 {
                break;
            }
            self.took(now, count as u32, (work, stats));
        }
        None
    }

    /// Counts bytes that were read.
    fn took(&mut self, now: Time, count: u32, (work, stats): (&mut Work, &mut FlowStats)) {
        if let Some((_, left)) = &mut self.rx {
            *left -= count;
            work.take(now, 0, count.into());
            stats.received.count(now, count as usize);
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
