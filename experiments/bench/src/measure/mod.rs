//! Measurements taken on a subject that is up.

mod intact;
mod packets;
mod ping;
mod shares;
mod tcp;

pub use shares::shares;

use crate::quantity::Figures;
use crate::selection::Part;
use crate::subject::World;
use anyhow::Result;

/// Takes a measurement through a line, from the first host to the second. `seconds` is its
/// approximate duration. Shares have their own topology, see [`shares()`].
///
/// # Errors
/// A program on a host fails, or the user stops the run.
pub(crate) fn through(world: &World<'_>, part: Part, seconds: u32) -> Result<Figures> {
    match part {
        Part::Tcp => tcp::both(world, seconds),
        Part::Ping => ping::both(world, seconds),
        Part::Packets => packets::all(world, seconds),
        Part::Intact => intact::both(world, seconds),
        Part::Shares => Ok(Figures::new()),
    }
}
