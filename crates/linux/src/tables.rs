//! The tables of a programmable switch, asked for at its status socket.

use crate::request;
use anyhow::{Context, Result, bail};
use axon_node::{Done, Request};
use axon_pipeline::{Shown, TableName, TablesAnswer, TablesRequest};
use std::path::Path;

/// Asks the switch whose status socket is `socket`.
///
/// # Errors
/// Nobody takes commands there, it is no programmable switch, or the request is longer than
/// [`request::REQUEST_BYTES_MAX`] allows.
pub fn ask(socket: &Path, asked: &TablesRequest) -> Result<TablesAnswer> {
    let done = request::ask(socket, Request::Tables(asked.to_bytes()))?;
    let Done::Tables(answer) = done else { bail!("{done:?} is no answer to this") };
    TablesAnswer::from_bytes(&answer).context("the answer of the switch")
}

/// All entries of a table, asked for page by page: what changes meanwhile may be there twice, or be
/// missing.
///
/// # Errors
/// As [`ask`].
pub fn entries(socket: &Path, table: TableName) -> Result<Vec<Shown>> {
    let (mut all, mut first) = (Vec::new(), Some(0));
    while let Some(from) = first {
        match ask(socket, &TablesRequest::Entries(table, from))? {
            TablesAnswer::Entries { page, next } => {
                all.extend(page);
                first = next.filter(|next| *next > from);
            }
            other => bail!("{other:?} is no answer to this"),
        }
    }
    Ok(all)
}

/// What is in no table: the action without a match, and options of ports.
///
/// # Errors
/// As [`ask`].
pub fn rest(socket: &Path) -> Result<Vec<Shown>> {
    match ask(socket, &TablesRequest::Rest)? {
        TablesAnswer::Entries { page, .. } => Ok(page),
        other => bail!("{other:?} is no answer to this"),
    }
}
