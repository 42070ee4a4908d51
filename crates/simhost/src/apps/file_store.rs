//! Files of a file server, and the calls to it.
//!
//! Calls are those of NFS version 2 (RFC 1094) that a client of small files makes: create, remove,
//! look up, read and write. A file has a number, chosen by its client among the client's own.
//! Contents are kept in memory, and reads return what was written. A repeated call, whose answer
//! was lost, is answered again but not executed again: the server keeps the last answer of each
//! client (Juszczak, USENIX Winter 1989). Clients number their calls from 1 and have one call
//! outstanding. A call older than the last one is dropped.

use super::caller::{HEADER_BYTES, parse_header};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Offset of the data in a call or an answer, after all headers. It is below the size of a call
/// without data, so that a block of 1 KiB and its call fit one frame.
pub(crate) const DATA_AT: usize = 64;
/// Length of a call after its header, in bytes.
const CALL_BYTES: usize = 20;
/// Length of an answer, in bytes: call number, status, and file size.
const ANSWER_BYTES: usize = 12;

/// Call from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileCall {
    /// Creates an empty file, replacing any file of this number.
    Create { file: u64 },
    /// Deletes a file.
    Remove { file: u64 },
    /// Looks up the size of a file.
    LookUp { file: u64 },
    /// Reads bytes at an offset.
    Read { file: u64, offset: u32, bytes: u32 },
    /// Writes bytes at an offset, at most the file's size.
    Write { file: u64, offset: u32, bytes: u32 },
}

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Success.
    Done,
    /// The file does not exist, or has no data at this offset.
    NoFile,
    /// The call is malformed.
    Malformed,
}

/// Answer, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileAnswer {
    pub(crate) status: Status,
    /// File size after the call, in bytes.
    pub(crate) size: u32,
}

impl FileCall {
    /// Returns the file number of the call.
    pub(crate) fn file(self) -> u64 {
        match self {
            FileCall::Create { file }
            | FileCall::Remove { file }
            | FileCall::LookUp { file }
            | FileCall::Read { file, .. }
            | FileCall::Write { file, .. } => file,
        }
    }

    /// Returns the bytes after the header of a request: the call, and from [`DATA_AT`] of the
    /// request the data of a write.
    pub(crate) fn emit(self) -> Vec<u8> {
        let (kind, offset, bytes): (u32, _, _) = match self {
            FileCall::Create { .. } => (0, 0, 0),
            FileCall::Remove { .. } => (1, 0, 0),
            FileCall::LookUp { .. } => (2, 0, 0),
            FileCall::Read { offset, bytes, .. } => (3, offset, bytes),
            FileCall::Write { offset, bytes, .. } => (4, offset, bytes),
        };
        let mut body = Vec::with_capacity(CALL_BYTES);
        body.extend(kind.to_be_bytes());
        body.extend(self.file().to_be_bytes());
        body.extend(offset.to_be_bytes());
        body.extend(bytes.to_be_bytes());
        if let FileCall::Write { file, offset, bytes } = self {
            body.resize(DATA_AT - HEADER_BYTES, 0);
            body.extend((0..bytes).map(|at| byte_of(file, offset + at)));
        }
        body
    }

    fn parse(body: &[u8]) -> Option<FileCall> {
        let body: &[u8; CALL_BYTES] = body.first_chunk()?;
        let word =
            |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        let file = u64::from(word(4)) << 32 | u64::from(word(8));
        let (offset, bytes) = (word(12), word(16));
        Some(match word(0) {
            0 => FileCall::Create { file },
            1 => FileCall::Remove { file },
            2 => FileCall::LookUp { file },
            3 => FileCall::Read { file, offset, bytes },
            4 => FileCall::Write { file, offset, bytes },
            _ => return None,
        })
    }
}

impl FileAnswer {
    /// Parses an answer. Returns `None` if it is too short.
    pub(crate) fn parse(bytes: &[u8]) -> Option<FileAnswer> {
        let bytes: &[u8; ANSWER_BYTES] = bytes.first_chunk()?;
        let status = match bytes[7] {
            0 => Status::Done,
            1 => Status::NoFile,
            _ => Status::Malformed,
        };
        let size = u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        Some(FileAnswer { status, size })
    }

    fn emit(self, number: u32) -> Vec<u8> {
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.extend((self.status as u32).to_be_bytes());
        bytes.extend(self.size.to_be_bytes());
        bytes
    }
}

/// Returns the byte that a client writes at this offset of a file. It differs between files, so
/// that lost, exchanged or shifted bytes are detected.
pub(crate) fn byte_of(file: u64, offset: u32) -> u8 {
    let mixed = (file ^ u64::from(offset) << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// In-memory disk.
#[derive(Debug, Default)]
pub(crate) struct FileStore {
    files: BTreeMap<(Ipv4Addr, u64), Vec<u8>>,
    /// Number and answer of each client's last call.
    last: BTreeMap<(Ipv4Addr, u16), (u32, Vec<u8>)>,
}

impl FileStore {
    /// Executes a request. Returns the answer, or `None` for an outdated request.
    pub(crate) fn serve(&mut self, from: (Ipv4Addr, u16), request: &[u8]) -> Option<Vec<u8>> {
        let (number, _) = parse_header(request)?;
        if let Some((last, answer)) = self.last.get(&from).filter(|_| number != 1) {
            if *last == number {
                return Some(answer.clone());
            }
            if (number.wrapping_sub(*last) as i32) < 0 {
                return None;
            }
        }
        let call = FileCall::parse(&request[HEADER_BYTES..]);
        let data = request.get(DATA_AT..).unwrap_or_default();
        let (status, size, read) = match call {
            Some(call) => self.call(from.0, call, data),
            None => (Status::Malformed, 0, Vec::new()),
        };
        let mut answer = FileAnswer { status, size }.emit(number);
        if !read.is_empty() {
            answer.resize(DATA_AT, 0);
            answer.extend(read);
        }
        self.last.insert(from, (number, answer.clone()));
        Some(answer)
    }

    /// Executes a call. Returns its status, the file size after it, and the data read.
    fn call(&mut self, ip: Ipv4Addr, call: FileCall, data: &[u8]) -> (Status, u32, Vec<u8>) {
        let missing = (Status::NoFile, 0, Vec::new());
        let key = (ip, call.file());
        if let FileCall::Create { .. } = call {
            self.files.insert(key, Vec::new());
            return (Status::Done, 0, Vec::new());
        }
        if let FileCall::Remove { .. } = call {
            let gone = self.files.remove(&key);
            return gone.map_or(missing, |_| (Status::Done, 0, Vec::new()));
        }
        let Some(file) = self.files.get_mut(&key) else { return missing };
        let mut read = Vec::new();
        match call {
            FileCall::Read { offset, bytes, .. } => {
                let from = file.get(offset as usize..).unwrap_or_default();
                read.extend_from_slice(&from[..from.len().min(bytes as usize)]);
            }
            FileCall::Write { offset, bytes, .. } => {
                let (offset, bytes) = (offset as usize, bytes as usize);
                if offset > file.len() || bytes > data.len() {
                    return missing;
                }
                file.resize(file.len().max(offset + bytes), 0);
                file[offset..offset + bytes].copy_from_slice(&data[..bytes]);
            }
            FileCall::Create { .. } | FileCall::Remove { .. } | FileCall::LookUp { .. } => {}
        }
        (Status::Done, u32::try_from(file.len()).unwrap_or(u32::MAX), read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::caller::{Call, emit_header};
    use super::*;
    use axon_wire::Span;

    const ONE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 700);
    const TWO: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 2), 700);

    fn request(number: u32, call: FileCall) -> Vec<u8> {
        let header = emit_header(number, &Call { request: 0, response: 0, work: Span::ZERO });
        [&header[..], &call.emit()].concat()
    }

    /// Returns status, size and data of an answer.
    fn said(answer: Option<Vec<u8>>) -> (Status, u32, Vec<u8>) {
        let answer = answer.expect("an answer");
        let FileAnswer { status, size } = FileAnswer::parse(&answer).expect("it is whole");
        (status, size, answer.get(DATA_AT..).unwrap_or_default().to_vec())
    }

    fn pattern(file: u64, range: std::ops::Range<u32>) -> Vec<u8> {
        range.map(|at| byte_of(file, at)).collect()
    }

    #[test]
    fn what_is_read_is_what_was_written_and_each_client_has_its_own_files() {
        let mut store = FileStore::default();
        let calls = [
            (FileCall::Create { file: 7 }, (0, 0)),
            (FileCall::Write { file: 7, offset: 0, bytes: 100 }, (100, 0)),
            (FileCall::Write { file: 7, offset: 100, bytes: 50 }, (150, 0)),
            (FileCall::LookUp { file: 7 }, (150, 0)),
            (FileCall::Read { file: 7, offset: 90, bytes: 100 }, (150, 60)),
        ];
        let mut number = 0;
        let mut say = |from, call| {
            number += 1;
            said(store.serve(from, &request(number, call)))
        };
        for (call, (size, bytes)) in calls {
            let (status, is, read) = say(ONE, call);
            assert_eq!((status, is, read.len()), (Status::Done, size, bytes), "{call:?}");
        }
        let (_, _, read) = say(ONE, FileCall::Read { file: 7, offset: 40, bytes: 80 });
        assert_eq!(read, pattern(7, 40..120));
        assert_ne!(read, pattern(8, 40..120));
        assert_eq!(say(TWO, FileCall::LookUp { file: 7 }).0, Status::NoFile);
        let gap = FileCall::Write { file: 7, offset: 151, bytes: 1 };
        assert_eq!(say(ONE, gap).0, Status::NoFile, "a file has no holes");
        assert_eq!(say(ONE, FileCall::Remove { file: 7 }).0, Status::Done);
        for call in [FileCall::Remove { file: 7 }, FileCall::Read { file: 7, offset: 0, bytes: 1 }]
        {
            assert_eq!(say(ONE, call), (Status::NoFile, 0, vec![]));
        }
    }

    #[test]
    fn a_call_that_comes_again_is_answered_and_not_done_again_and_a_late_one_is_dropped() {
        let mut store = FileStore::default();
        let create = request(1, FileCall::Create { file: 1 });
        let write = request(2, FileCall::Write { file: 1, offset: 0, bytes: 10 });
        let remove = request(3, FileCall::Remove { file: 1 });
        for call in [&create, &write, &remove, &remove] {
            assert_eq!(said(store.serve(ONE, call)).0, Status::Done);
        }
        assert_eq!(store.serve(ONE, &write), None, "it was overtaken by the removal");
        assert_eq!(said(store.serve(ONE, &create)).0, Status::Done, "a client begins anew");
        assert_eq!(said(store.serve(ONE, &write)).1, 10);
    }

    #[test]
    fn what_is_no_call_is_refused_and_changes_nothing() {
        let mut store = FileStore::default();
        let mut wrong = request(5, FileCall::Create { file: 1 });
        wrong[HEADER_BYTES + 3] = 9;
        assert_eq!(said(store.serve(ONE, &wrong)).0, Status::Malformed);
        assert_eq!(store.serve(ONE, &wrong[..HEADER_BYTES - 1]), None);
        assert_eq!(
            said(store.serve(ONE, &request(6, FileCall::Create { file: 1 })[..30])).0,
            Status::Malformed
        );
        let short = request(7, FileCall::Write { file: 1, offset: 0, bytes: 10 });
        said(store.serve(ONE, &request(7, FileCall::Create { file: 1 })));
        let mut short = short[..short.len() - 1].to_vec();
        short[3] = 8;
        assert_eq!(said(store.serve(ONE, &short)).0, Status::NoFile, "its data are cut");
        assert!(store.files[&(ONE.0, 1)].is_empty());
    }
}
