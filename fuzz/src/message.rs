//! Any bytes as a link frame, an envelope and a control message: no panic, memory in
//! proportion to the input, and what is read is written back so that it reads the same.

use axon_wire::envelope::Envelope;
use axon_wire::link;
use axon_wire::message::Message;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let envelope = link::parse(bytes).unwrap_or(bytes);
    if let Ok(envelope) = Envelope::parse(envelope) {
        let written = envelope.emit();
        assert_eq!(Envelope::parse(&written), Ok(envelope));
        check_message(envelope.sealed);
    }
    check_message(bytes);
}

fn check_message(bytes: &[u8]) {
    let Some((vlan, message)) = Message::decode(bytes) else {
        return;
    };
    let written = message.encode(vlan);
    assert!(written.len() <= bytes.len(), "no encoding is longer than the one that was read");
    assert_eq!(Message::decode(&written), Some((vlan, message)));
}
