//! Changes the keys of a running daemon.

use crate::request;
use anyhow::{Result, bail};
use axon_node::{Done, Keys, Request};
use std::path::Path;

/// Sends keys to the daemon whose status socket is `socket`. The daemon uses them at once and until
/// it ends. When it starts again, it reads its fabric file.
///
/// # Errors
/// No daemon accepts commands there, or the keys do not belong to that node.
pub fn rekey(socket: &Path, keys: &Keys) -> Result<()> {
    match request::ask(socket, Request::Rekey(Box::new(keys.clone())))? {
        Done::Rekeyed => Ok(()),
        done @ (Done::Probe(_) | Done::Tables(_) | Done::Policy(_)) => {
            bail!("{done:?} is no answer to this")
        }
    }
}
