//! Requests of operators for the tables of a running switch, and the answers: the bytes of
//! [`axon_node::Request::Tables`] and [`axon_node::Done::Tables`], the version of this encoding
//! followed by postcard's.

use crate::change::{Change, ChangeError, EntryName};
use crate::explain::{Explanation, Stage};
use crate::pipeline::Pipeline;
use crate::tables::{EntryCount, Shown, TableName};
use alloc::format;
use alloc::vec::Vec;
use axon_wire::PortNo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum bytes of one page of entries, so that an answer fits the buffer of a socket.
pub const PAGE_BYTES_MAX: usize = 32 * 1024;

/// Version of requests and answers; both ends need the same.
pub(crate) const VERSION: u8 = 1;

/// Errors in decoding a request or answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// Another version of the encoding.
    #[error(
        "its encoding is of version {found}, expected {VERSION}: both ends need one version of axon"
    )]
    OtherVersion {
        /// The version found.
        found: u8,
    },
    /// Truncated or invalid bytes.
    #[error("cannot be read: {0}")]
    Malformed(postcard::Error),
}

fn to_bytes(message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, alloc::vec![VERSION]).unwrap_or_default()
}

fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, EncodingError> {
    match bytes {
        [VERSION, rest @ ..] => postcard::from_bytes(rest).map_err(EncodingError::Malformed),
        [found, ..] => Err(EncodingError::OtherVersion { found: *found }),
        [] => Err(EncodingError::Malformed(postcard::Error::DeserializeUnexpectedEnd)),
    }
}

/// Request for the tables of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TablesRequest {
    /// The number of entries of all tables.
    Counts,
    /// The entries of a table, from this position on: as many as fit a page.
    Entries(TableName, u32),
    /// The action without a match, and the options of the ports.
    Rest,
    /// Make all these changes, or none.
    Commit(Vec<Change>),
    /// Remove all entries of a table, or none if one is in use.
    Clear(TableName),
    /// The path of a frame received on a port.
    Explain(PortNo, Vec<u8>),
}

/// Answer to a request for the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TablesAnswer {
    /// The number of entries of each table.
    Counts(Vec<EntryCount>),
    /// A page of entries.
    Entries {
        /// The entries.
        page: Vec<Shown>,
        /// Position of the next page; `None` after the last one.
        next: Option<u32>,
    },
    /// The number of changes made.
    Committed(u32),
    /// No change was made: the first refused one.
    Refused(ChangeError),
    /// The path of a frame.
    Explained(Explanation),
    /// The frame is for a port that does not exist.
    NoSuchPort(PortNo),
}

impl TablesRequest {
    /// Returns the encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }
}

impl TablesAnswer {
    /// Returns the encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }

    /// Decodes the encoding of [`TablesAnswer::to_bytes`].
    ///
    /// # Errors
    /// Invalid bytes, or another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<TablesAnswer, EncodingError> {
        from_bytes(bytes)
    }
}

/// Executes `request` on a pipeline; returns the reply and the removed entries.
///
/// # Errors
/// Invalid bytes, or another version.
pub(crate) fn serve(
    pipeline: &mut Pipeline,
    request: &[u8],
) -> Result<(Vec<u8>, Vec<EntryName>), EncodingError> {
    let mut removed = Vec::new();
    let answer = match from_bytes(request)? {
        TablesRequest::Counts => TablesAnswer::Counts(pipeline.tables().counts()),
        TablesRequest::Entries(table, first) => page(pipeline.tables().entries(table), first),
        TablesRequest::Rest => TablesAnswer::Entries { page: pipeline.tables().rest(), next: None },
        TablesRequest::Commit(changes) => commit(pipeline, &changes, &mut removed),
        TablesRequest::Clear(table) => {
            let entries = pipeline.tables().entries(table);
            let changes: Vec<Change> =
                entries.iter().map(|shown| shown.change.entry().removal()).collect();
            commit(pipeline, &changes, &mut removed)
        }
        TablesRequest::Explain(port, frame) => {
            let is_there = port.index() < usize::from(pipeline.config().ports);
            match is_there {
                true => TablesAnswer::Explained(fit(pipeline.explain(port, &frame))),
                false => TablesAnswer::NoSuchPort(port),
            }
        }
    };
    Ok((answer.to_bytes(), removed))
}

fn commit(
    pipeline: &mut Pipeline,
    changes: &[Change],
    removed: &mut Vec<EntryName>,
) -> TablesAnswer {
    match pipeline.commit(changes) {
        Ok(()) => {
            let removals = changes.iter().filter(|change| **change == change.entry().removal());
            removed.extend(removals.map(Change::entry));
            TablesAnswer::Committed(changes.len() as u32)
        }
        Err(error) => TablesAnswer::Refused(error),
    }
}

/// Truncates the list of sent frames to as many as fit a page, and at least one.
fn fit(mut way: Explanation) -> Explanation {
    let mut bytes = 0;
    let fits = |(_, frame): &&(PortNo, Vec<u8>)| {
        let is_first = bytes == 0;
        bytes += frame.len();
        is_first || bytes <= PAGE_BYTES_MAX
    };
    let kept = way.sent.iter().take_while(fits).count();
    let more = way.sent.split_off(kept).len();
    if more > 0 {
        let text = format!("{more} more copies, which no answer has room for");
        way.stages.push(Stage { name: "out".into(), text });
    }
    way
}

/// Returns the entries from position `first` on that fit a page, and at least one.
fn page(entries: Vec<Shown>, first: u32) -> TablesAnswer {
    let mut bytes = 0;
    let mut page = Vec::new();
    let mut rest = entries.into_iter().skip(first as usize);
    for shown in rest.by_ref() {
        bytes += postcard::to_allocvec(&shown).map_or(0, |bytes| bytes.len());
        page.push(shown);
        if bytes >= PAGE_BYTES_MAX {
            break;
        }
    }
    let next = first + page.len() as u32;
    TablesAnswer::Entries { page, next: rest.next().map(|_| next) }
}

impl EntryName {
    /// Returns whether frames are looked up in the table and counted: not for keys, interfaces,
    /// groups, tunnels and options of ports.
    pub const fn is_looked_up(&self) -> bool {
        match self {
            EntryName::Tcam(_)
            | EntryName::Mac(_)
            | EntryName::Ipv4(_)
            | EntryName::Mpls(_)
            | EntryName::Prefix(_)
            | EntryName::Miss => true,
            EntryName::Udlk(_)
            | EntryName::Interface(_)
            | EntryName::Group(_)
            | EntryName::Tunnel(_)
            | EntryName::Port(_) => false,
        }
    }
}
