//! The programs that ship, by name.

use crate::bcube::{Bcube, Cube};
use crate::dcell::{Cells, Dcell};
use crate::server::EthernetSwitch;
use crate::site::{Shape, Site};
use alloc::boxed::Box;
use axon_pipeline::Program;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A program that ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    /// BCube: servers that forward by source routes, and plain switches between them.
    Bcube,
    /// DCell: servers that forward by address, and plain switches in the smallest cells.
    Dcell,
}

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
    pub const ALL: &'static [ProgramKind] = &[ProgramKind::Bcube, ProgramKind::Dcell];

    /// The name in fabric files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            ProgramKind::Bcube => "bcube",
            ProgramKind::Dcell => "dcell",
        }
    }

    /// Bytes that the program's entries put before frames between nodes, at most.
    pub const fn overhead_bytes(self) -> usize {
        match self {
            ProgramKind::Bcube => crate::bcube::OVERHEAD_BYTES,
            ProgramKind::Dcell => crate::dcell::OVERHEAD_BYTES,
        }
    }

    /// Checks that the network is one that the program is made for.
    ///
    /// # Errors
    /// What it is made for.
    pub fn check(self, shape: Shape) -> Result<(), Unsuitable> {
        let unless = |fits, expected| {
            if fits { Ok(()) } else { Err(Unsuitable { program: self, expected }) }
        };
        match self {
            ProgramKind::Bcube => unless(cube_of(shape).is_some(), crate::bcube::EXPECTED),
            ProgramKind::Dcell => unless(cells_of(shape).is_some(), crate::dcell::EXPECTED),
        }
    }

    /// The program of one node of a network that was checked.
    pub fn program(self, site: Site) -> Box<dyn Program> {
        match self {
            ProgramKind::Bcube => match cube_of(site.plan.shape) {
                Some(cube) if site.node < cube.servers() => Box::new(Bcube::new(&site, cube)),
                _ => Box::new(EthernetSwitch::new(site)),
            },
            ProgramKind::Dcell => match cells_of(site.plan.shape) {
                Some(cells) if site.node < cells.servers() => Box::new(Dcell::new(&site, cells)),
                _ => Box::new(EthernetSwitch::new(site)),
            },
        }
    }
}

fn cube_of(shape: Shape) -> Option<Cube> {
    match shape {
        Shape::Bcube { n, k } => Cube::new(n, k),
        _ => None,
    }
}

fn cells_of(shape: Shape) -> Option<Cells> {
    match shape {
        Shape::Dcell { n, k } => Cells::new(n, k),
        _ => None,
    }
}

impl fmt::Display for ProgramKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
