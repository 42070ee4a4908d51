//! Text protocol of memcached over UDP, as far as a cache next to a switch needs it.
//!
//! Source: `doc/protocol.txt` of memcached, "UDP protocol". Each datagram has a frame header of
//! eight bytes: request ID, sequence number, number of datagrams, and a reserved field, with two
//! bytes each. Only answers that fit in one datagram are cached. A `get` for one key is answered.
//! `gets`, and a `get` for several keys, go to the server.

/// Length of the frame header before the text, in bytes.
pub(crate) const FRAME_HEADER_BYTES: usize = 8;
/// Longest key in bytes.
const KEY_BYTES_MAX: usize = 250;
/// End of a line.
const CRLF: &[u8] = b"\r\n";

/// Request from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get` for one key.
    Get(&'a [u8]),
    /// Command that changes one key.
    Write(&'a [u8]),
    /// Command that changes many keys (`flush_all`), or may do so.
    WriteAll,
    /// Any other command, which changes nothing.
    Other,
}

/// Returns the text in a datagram, if it is the only datagram of its request or answer.
fn text(datagram: &[u8]) -> Option<&[u8]> {
    let (header, text) = datagram.split_first_chunk::<FRAME_HEADER_BYTES>()?;
    (header[2..6] == [0, 0, 0, 1]).then_some(text)
}

/// Returns the frame header of the one-datagram answer to a request.
pub(crate) fn answer_header(request: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
    let id = |at: usize| request.get(at).copied().unwrap_or(0);
    [id(0), id(1), 0, 0, 0, 1, 0, 0]
}

/// Returns the first line without its end, or `None` if the line is incomplete.
fn line(text: &[u8]) -> Option<&[u8]> {
    let end = text.windows(2).position(|two| two == CRLF)?;
    Some(&text[..end])
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

fn key(word: Option<&[u8]>) -> Option<&[u8]> {
    word.filter(|key| key.len() <= KEY_BYTES_MAX && key.iter().all(|byte| byte.is_ascii_graphic()))
}

/// Parses a datagram from a client, which may be truncated. A datagram that cannot be parsed counts
/// as a write that may change any key.
pub(crate) fn request(datagram: &[u8]) -> Request<'_> {
    let Some(line) = text(datagram).and_then(line) else { return Request::WriteAll };
    let mut words = words(line);
    let command = words.next().unwrap_or_default();
    match command {
        b"get" => match (key(words.next()), words.next()) {
            (Some(key), None) => Request::Get(key),
            _ => Request::Other,
        },
        b"gets" | b"stats" | b"version" | b"verbosity" | b"quit" | b"mg" | b"mn" | b"me" => {
            Request::Other
        }
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" | b"delete" | b"incr"
        | b"decr" | b"touch" | b"gat" | b"gats" | b"ms" | b"md" | b"ma" => {
            // `gat` and `gats` have the time before the keys, and may have several keys.
            let is_of_one = !command.starts_with(b"gat");
            let key = key(words.next()).filter(|_| is_of_one);
            key.map_or(Request::WriteAll, Request::Write)
        }
        _ => Request::WriteAll,
    }
}

/// Returns the key in an answer to `get` or `gets`, which may be truncated. [`is_whole_answer`]
/// decides whether the answer may be cached.
pub(crate) fn answered_key(datagram: &[u8]) -> Option<&[u8]> {
    let mut words = words(line(text(datagram)?)?);
    if words.next() != Some(b"VALUE") {
        return None;
    }
    key(words.next())
}

/// Returns whether a datagram is the complete answer to a `get` for one key, with one item and its
/// end.
pub(crate) fn is_whole_answer(datagram: &[u8]) -> bool {
    let Some(text) = text(datagram) else { return false };
    let Some(line) = line(text) else { return false };
    let mut words = words(line);
    // The line must have four words. In an answer to `gets`, it has a fifth.
    let [first, _, _, bytes, none] = core::array::from_fn(|_| words.next());
    let bytes = bytes.and_then(|bytes| core::str::from_utf8(bytes).ok()?.parse::<usize>().ok());
    let (Some(b"VALUE"), Some(bytes), None) = (first, bytes, none) else { return false };
    let rest = &text[line.len() + CRLF.len()..];
    rest.get(bytes..).is_some_and(|end| end == b"\r\nEND\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn datagram(text: &str) -> Vec<u8> {
        [&[7, 9, 0, 0, 0, 1, 0, 0], text.as_bytes()].concat()
    }

    #[test]
    fn requests_are_read_as_the_protocol_has_them() {
        let long = "k".repeat(251);
        let cases = [
            ("get key\r\n".into(), Request::Get(b"key")),
            ("get a b\r\n".into(), Request::Other),
            (alloc::format!("get {long}\r\n"), Request::Other),
            ("gets key\r\n".into(), Request::Other),
            ("set key 0 60 5\r\nhello\r\n".into(), Request::Write(b"key")),
            ("delete key noreply\r\n".into(), Request::Write(b"key")),
            ("incr key 1\r\n".into(), Request::Write(b"key")),
            ("gat 60 key\r\n".into(), Request::WriteAll),
            ("flush_all\r\n".into(), Request::WriteAll),
            ("set ke".into(), Request::WriteAll),
            ("unknown key\r\n".into(), Request::WriteAll),
        ];
        for (text, expected) in cases {
            let datagram = datagram(&text);
            assert_eq!(request(&datagram), expected, "{text}");
        }
        let mut second = datagram("et key 0 0 1\r\n");
        second[3] = 1;
        assert_eq!(request(&second), Request::WriteAll, "one of several datagrams");
        assert_eq!(answer_header(&datagram("")), [7, 9, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn only_a_whole_answer_of_one_item_is_cached() {
        let whole = datagram("VALUE key 0 5\r\nhello\r\nEND\r\n");
        assert_eq!(answered_key(&whole), Some(&b"key"[..]));
        assert!(is_whole_answer(&whole));
        assert_eq!(answered_key(&whole[..25]), Some(&b"key"[..]), "the head is enough");
        for text in [
            "END\r\n",
            "VALUE key 0 5\r\nhello\r\n",
            "VALUE key 0 4\r\nhello\r\nEND\r\n",
            "VALUE key 0 99\r\nhello\r\nEND\r\n",
            "VALUE key 0 5 77\r\nhello\r\nEND\r\n",
            "VALUE key 0 1\r\na\r\nVALUE two 0 1\r\nb\r\nEND\r\n",
            "VALUE key 0 x\r\nhello\r\nEND\r\n",
            "STORED\r\n",
        ] {
            assert!(!is_whole_answer(&datagram(text)), "{text}");
        }
        let mut first = whole.clone();
        first[5] = 2;
        assert!(!is_whole_answer(&first) && answered_key(&first).is_none());
    }
}
