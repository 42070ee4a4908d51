//! A round of the firmware, in which at most one packet is received and at most one is sent.

use super::bus::Packet;
use super::memory::Engine;

/// State of a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    receiving: Option<Packet>,
    sending: Option<Packet>,
    /// True if the work of the processor, followed by the wait for the host and the stall, is
    /// pending.
    is_processing: bool,
    /// Halves of a packet's work in this round: one for receiving and one for sending.
    halves: u32,
}

impl Round {
    /// Starts a round. Returns the number of halves of a packet's work in it, or zero if there is
    /// nothing to do.
    pub(super) fn start(&mut self, receiving: Option<Packet>, sending: Option<Packet>) -> u32 {
        let halves = u32::from(receiving.is_some()) + u32::from(sending.is_some());
        *self = Round { receiving, sending, is_processing: halves > 0, halves };
        halves
    }

    /// Returns the number of halves of a packet's work in this round.
    pub(super) fn halves(&self) -> u32 {
        self.halves
    }

    /// Returns whether the next round may start.
    pub(super) fn is_over(&self) -> bool {
        self.receiving.is_none() && self.sending.is_none() && !self.is_processing
    }

    /// Completes the work of a network engine, and returns its packet.
    pub(super) fn done(&mut self, engine: Engine) -> Option<Packet> {
        match engine {
            Engine::Receive => self.receiving.take(),
            Engine::Send => self.sending.take(),
            Engine::External | Engine::Processor => None,
        }
    }

    /// Completes the work of the firmware.
    pub(super) fn processed(&mut self) {
        self.is_processing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::buffers::Held;

    #[test]
    fn a_round_is_over_when_both_engines_and_the_firmware_are_done() {
        let packet = Some(Packet { arrived: 7, held: Held::NONE });
        let mut round = Round::default();
        assert!(round.is_over());
        assert_eq!(round.start(None, None), 0);
        assert!(round.is_over());
        assert_eq!(round.start(packet, None), 1);
        assert_eq!(round.done(Engine::Send), None);
        round.processed();
        assert!(!round.is_over());
        assert_eq!(round.done(Engine::Receive), packet);
        assert!(round.is_over());
        assert_eq!(round.start(packet, packet), 2);
        round.done(Engine::Receive);
        round.done(Engine::Send);
        assert!(!round.is_over());
    }
}
