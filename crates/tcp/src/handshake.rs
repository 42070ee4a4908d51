//! The SYN of one end: its transmission, retransmission and options (RFC 9293 §3.5, RFC 6298 §5.7).

use crate::config::Config;
use crate::receive::Receiver;
use crate::segment::{Flags, Options, Segment, Seq};
use crate::send::Sender;
use axon_wire::Time;

/// State of a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    /// Initial sequence number: the number of this end's SYN.
    first: Seq,
    /// Time of the next transmission of the SYN.
    at: Option<Time>,
    /// Time of the first SYN; `None` once it has been retransmitted.
    opened: Option<Time>,
    tries: u8,
    /// True if a SYN is due.
    due: bool,
}

impl Handshake {
    /// Returns a handshake that has not begun.
    pub(crate) fn new(first: Seq) -> Handshake {
        Handshake { first, at: None, opened: None, tries: 0, due: false }
    }

    /// Sets the time of the first SYN.
    pub(crate) fn start(&mut self, now: Time) {
        self.at = Some(now);
    }

    /// Returns the sequence number after that of the SYN.
    pub(crate) fn next(&self) -> Seq {
        self.first + 1
    }

    /// Makes a SYN due.
    pub(crate) fn repeat(&mut self) {
        self.due = true;
    }

    /// Ends the handshake. Returns the time of the SYN, unless it was retransmitted.
    pub(crate) fn stop(&mut self) -> Option<Time> {
        (self.at, self.due) = (None, false);
        self.opened
    }

    /// Returns when the SYN is sent next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        if self.due { Some(Time::ZERO) } else { self.at }
    }

    /// Makes the SYN due if its time has come. Returns whether to give up instead.
    pub(crate) fn expire(&mut self, now: Time, config: &Config, sender: &mut Sender) -> bool {
        if self.at.is_none_or(|at| at > now) {
            return false;
        }
        if self.tries > config.retries {
            return true;
        }
        self.opened = (self.tries == 0).then_some(now);
        self.at = Some(now + sender.syn_timeout(self.tries, config));
        self.tries += 1;
        self.due = true;
        false
    }

    /// Takes the SYN, or the SYN-ACK if it `answers` one, if it is due.
    pub(crate) fn take(
        &mut self,
        answers: bool,
        config: &Config,
        sender: &Sender,
        receiver: &mut Receiver,
    ) -> Option<Segment> {
        if !core::mem::take(&mut self.due) {
            return None;
        }
        let ecn = if answers { sender.agreed().ecn } else { config.wants_ecn() };
        let mut flags = Flags::SYN;
        if answers {
            flags = flags | Flags::ACK;
        }
        if ecn {
            // A SYN offers ECN with both bits; a SYN-ACK accepts it with ECE alone (RFC 3168
            // §6.1.1).
            flags = if answers { flags | Flags::ECE } else { flags | Flags::ECE | Flags::CWR };
        }
        let options = Options {
            mss: Some(config.mss),
            scale: receiver.scale(answers),
            sack_permitted: if answers { sender.agreed().sack } else { config.sack },
            ..Options::default()
        };
        let window = if answers {
            receiver.window(true)
        } else {
            config.window().min(u32::from(u16::MAX)) as u16
        };
        let ack = if answers { receiver.next() } else { Seq(0) };
        Some(Segment { seq: self.first, ack, flags, window, options, ..Segment::default() })
    }
}
