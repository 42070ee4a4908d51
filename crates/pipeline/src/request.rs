//! What an operator asks of the tables of a running switch, and the answers: the bytes of
//! [`axon_node::Request::Tables`] and [`axon_node::Done::Tables`], the version of this encoding and
//! postcard's.

use crate::change::{Change, ChangeError, EntryName};
use crate::explain::{Explanation, Stage};
use crate::pipeline::Pipeline;
use crate::tables::{EntryCount, Shown, TableName};
use alloc::format;
use alloc::vec::Vec;
use axon_wire::PortNo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The most bytes of one page of entries, so that an answer fits the buffer of a socket.
pub const PAGE_BYTES_MAX: usize = 32 * 1024;

/// The version of the requests and answers. Who asks and who answers need the same.
pub const VERSION: u8 = 1;

/// Why bytes are no request or answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// They are of another version of axon.
    #[error(
        "its encoding is of version {found}, expected {VERSION}: both ends need one version of axon"
    )]
    OtherVersion {
        /// The version that was found.
        found: u8,
    },
    /// They are cut short, or never were one.
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

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TablesRequest {
    /// How full are all tables?
    Counts,
    /// The entries of a table, from this place among them on: as many as a page takes.
    Entries(TableName, u32),
    /// The action without a match, and the options of the ports.
    Rest,
    /// Make all these changes, or none.
    Commit(Vec<Change>),
    /// Remove all entries of a table, or none if one is in use.
    Clear(TableName),
    /// The way of a frame that came in by a port.
    Explain(PortNo, Vec<u8>),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TablesAnswer {
    /// How full each table is.
    Counts(Vec<EntryCount>),
    /// A page of entries.
    Entries {
        /// The entries.
        page: Vec<Shown>,
        /// Where the next page begins; nothing after the last one.
        next: Option<u32>,
    },
    /// So many changes are made.
    Committed(u32),
    /// No change is made, and why.
    Refused(ChangeError),
    /// The way of a frame.
    Explained(Explanation),
    /// The frame is for a port that the switch does not have.
    NoSuchPort(PortNo),
}

impl TablesRequest {
    /// Its encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }
}

impl TablesAnswer {
    /// Its encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }

    /// Reads what [`TablesAnswer::to_bytes`] writes.
    ///
    /// # Errors
    /// It is none, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<TablesAnswer, EncodingError> {
        from_bytes(bytes)
    }
}

/// Does what `request` asks of a pipeline; answers with the reply and the entries that it has
/// removed.
///
/// # Errors
/// The bytes are no request, or one of another version.
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

/// As many of the frames that would leave as a page takes, and at least one.
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

/// The entries from the place `first` on that fit a page, and at least one.
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
    /// Whether frames are looked up for it and counted: not so keys, interfaces, groups, tunnels
    /// and options of ports.
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
