//! The programs that ship, by name.

use crate::site::{Shape, Site};
use alloc::boxed::Box;
use axon_pipeline::Program;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A program that ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {}

/// A network that a program is not made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program {program} runs on {expected}")]
pub struct Unsuitable {
    /// The program.
    pub program: ProgramKind,
    /// What it runs on.
    pub expected: &'static str,
}

impl ProgramKind {
    /// All of them, in order.
    pub const ALL: &'static [ProgramKind] = &[];

    /// The name in fabric files and messages.
    pub const fn name(self) -> &'static str {
        match self {}
    }

    /// Bytes that the program's entries put before frames between nodes, at most.
    pub const fn overhead_bytes(self) -> usize {
        match self {}
    }

    /// Checks that the network is one that the program is made for.
    ///
    /// # Errors
    /// What it is made for.
    pub fn check(self, shape: Shape) -> Result<(), Unsuitable> {
        let _ = shape;
        match self {}
    }

    /// The program of one node of a network that was checked.
    pub fn program(self, site: Site) -> Box<dyn Program> {
        let _ = site;
        match self {}
    }
}

impl fmt::Display for ProgramKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
