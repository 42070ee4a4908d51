//! Announcement that a server sends on a port: its number, and the servers that it receives there.

use alloc::vec::Vec;

/// Announcement of a server. It is encoded as the server's number and the count of the others in 4
/// bytes each, followed by their numbers, all in network byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Number of the sending server.
    pub(crate) server: u32,
    /// Servers recently received on this port.
    pub(crate) received: Vec<u32>,
}

impl Hello {
    pub(crate) fn emit(&self) -> Vec<u8> {
        let count = self.received.len() as u32;
        let numbers = [self.server, count].into_iter().chain(self.received.iter().copied());
        numbers.flat_map(u32::to_be_bytes).collect()
    }

    /// Parses the announcement at the start of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Hello> {
        let (words, _) = bytes.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_be_bytes(*word));
        let (server, count) = (words.next()?, words.next()? as usize);
        let received: Vec<u32> = words.take(count).collect();
        (received.len() == count).then_some(Hello { server, received })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_parsed_as_it_was_made_and_one_cut_short_is_none() {
        let hello = Hello { server: 7, received: alloc::vec![1, 0x12345] };
        let bytes = hello.emit();
        assert_eq!(Hello::parse(&[&bytes[..], &[9; 5]].concat()), Some(hello));
        for length in 0..bytes.len() {
            assert_eq!(Hello::parse(&bytes[..length]), None, "{length}");
        }
        assert_eq!(Hello::parse(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3]), None);
    }
}
