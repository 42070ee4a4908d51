//! Key change of a running daemon.

use crate::request;
use anyhow::{Result, bail};
use axon_node::{Done, Keys, Request};
use std::path::Path;

/// Sends keys to the daemon whose status socket is `socket`. It uses them at once, until it ends;
/// when it starts again it reads its fabric file.
///
/// # Errors
/// No daemon takes commands there, or the keys are not those of that node.
pub fn rekey(socket: &Path, keys: &Keys) -> Result<()> {
    match request::ask(socket, Request::Rekey(Box::new(keys.clone())))? {
        Done::Rekeyed => Ok(()),
        done @ (Done::Probe(_) | Done::Tables(_) | Done::Policy(_)) => {
            bail!("{done:?} is no answer to this")
        }
    }
}
