//! Queries the tables of a programmable switch through its status socket.

use crate::request;
use anyhow::{Context, Result, bail};
use axon_node::{Done, Request};
use axon_pipeline::{Shown, TableName, TablesAnswer, TablesRequest};
use std::path::Path;

/// Queries the switch whose status socket is `socket`.
///
/// # Errors
/// No daemon accepts commands there, the daemon is not a programmable switch, or the request is
/// longer than `request::REQUEST_BYTES_MAX` allows.
pub fn ask(socket: &Path, asked: &TablesRequest) -> Result<TablesAnswer> {
    let done = request::ask(socket, Request::Tables(asked.to_bytes()))?;
    let Done::Tables(answer) = done else { bail!("{done:?} is no answer to this") };
    TablesAnswer::from_bytes(&answer).context("the answer of the switch")
}

/// Returns all entries in a table, queried page by page. Entries that change in the meantime may be
/// duplicated or missing.
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

/// Returns the state outside of tables: the action for frames without a match, and the port
/// options.
///
/// # Errors
/// As [`ask`].
pub fn rest(socket: &Path) -> Result<Vec<Shown>> {
    match ask(socket, &TablesRequest::Rest)? {
        TablesAnswer::Entries { page, .. } => Ok(page),
        other => bail!("{other:?} is no answer to this"),
    }
}
