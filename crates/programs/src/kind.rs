//! Shipped programs by name.

use crate::bcube::{self, Bcube};
use crate::bridge::Bridge;
use crate::dcell::{self, Dcell};
use crate::fat_tree::{self, FatTree};
use crate::link_state::PORTS_MAX;
use crate::planned::{Design, Planned};
use crate::portland::{self, PortLand};
use crate::server::EthernetSwitch;
use crate::site::{Plan, Site};
use crate::stack::{self, Stack};
use crate::tags::{self, Tags};
use crate::vl2::{self, Vl2};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use axon_pipeline::{Control, Program, Received};
use axon_wire::Time;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Bytes of an MPLS label.
const LABEL_BYTES: usize = 4;

/// Shipped program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    /// A learning bridge with RSTP.
    Bridge,
    /// Two-level lookup in a fat tree.
    FatTree,
    /// PortLand.
    Portland,
    /// Label switching: each switch swaps the label.
    Tags,
    /// Label stack: each switch pops a label.
    Stack,
    /// VL2: packets are encapsulated and spread over the middle of the network.
    Vl2,
    /// BCube: servers that forward by source routes, and plain switches between them.
    Bcube,
    /// DCell: servers that forward by address, and plain switches in the smallest cells.
    Dcell,
}

/// Error: the network is not supported by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program {program} runs on {expected}")]
pub struct Unsuitable {
    /// Program that refuses the network.
    pub program: ProgramKind,
    /// Networks that the program supports, as text of the error message.
    pub expected: &'static str,
}

impl ProgramKind {
    /// All programs, in order.
    pub const ALL: &'static [ProgramKind] = &[
        ProgramKind::Bridge,
        ProgramKind::FatTree,
        ProgramKind::Portland,
        ProgramKind::Tags,
        ProgramKind::Stack,
        ProgramKind::Vl2,
        ProgramKind::Bcube,
        ProgramKind::Dcell,
    ];

    /// Returns the name used in fabric files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            ProgramKind::Bridge => "bridge",
            ProgramKind::FatTree => "fat_tree",
            ProgramKind::Portland => "portland",
            ProgramKind::Tags => "tags",
            ProgramKind::Stack => "stack",
            ProgramKind::Vl2 => "vl2",
            ProgramKind::Bcube => "bcube",
            ProgramKind::Dcell => "dcell",
        }
    }

    /// Returns the maximum overhead that the program adds to frames between nodes, in bytes.
    pub const fn overhead_bytes(self) -> usize {
        match self {
            ProgramKind::Bridge | ProgramKind::FatTree | ProgramKind::Portland => 0,
            ProgramKind::Tags => LABEL_BYTES,
            ProgramKind::Stack => stack::HOPS_MAX * LABEL_BYTES,
            ProgramKind::Vl2 => vl2::OVERHEAD_BYTES,
            ProgramKind::Bcube => bcube::OVERHEAD_BYTES,
            ProgramKind::Dcell => dcell::OVERHEAD_BYTES,
        }
    }

    /// Describes the supported networks.
    pub const fn expected(self) -> &'static str {
        match self {
            ProgramKind::Bridge => "any network",
            ProgramKind::FatTree => fat_tree::EXPECTED,
            ProgramKind::Portland => portland::EXPECTED,
            ProgramKind::Tags => tags::EXPECTED,
            ProgramKind::Stack => stack::EXPECTED,
            ProgramKind::Vl2 => vl2::EXPECTED,
            ProgramKind::Bcube => bcube::EXPECTED,
            ProgramKind::Dcell => dcell::EXPECTED,
        }
    }

    /// Returns whether the program forwards VLAN-tagged frames, which hosts with traffic classes
    /// send. The keys of the other programs match only untagged frames.
    pub const fn knows_tags(self) -> bool {
        matches!(self, ProgramKind::Bridge)
    }

    /// Checks that the program supports the network.
    ///
    /// # Errors
    /// The program does not support the network. The error describes the networks that it supports.
    pub fn check(self, plan: &Plan) -> Result<(), Unsuitable> {
        let unsuitable = |expected| Err(Unsuitable { program: self, expected });
        if plan.nodes.iter().any(|node| node.ports.len() > PORTS_MAX) {
            return unsuitable("switches with at most 512 ports");
        }
        let suits = match self {
            ProgramKind::Bridge => true,
            ProgramKind::FatTree => FatTree::of(plan).is_some(),
            ProgramKind::Portland => PortLand::of(plan).is_some(),
            ProgramKind::Tags => Tags::of(plan).is_some(),
            ProgramKind::Stack => Stack::suits(plan),
            ProgramKind::Vl2 => Vl2::of(plan).is_some(),
            ProgramKind::Bcube => bcube::of(plan).is_some(),
            ProgramKind::Dcell => dcell::of(plan).is_some(),
        };
        if suits { Ok(()) } else { unsuitable(self.expected()) }
    }

    /// Returns the program for one node of a network that has been checked. In any other network,
    /// the program fails at once with a message.
    pub fn program(self, site: Site) -> Box<dyn Program> {
        match self {
            ProgramKind::Bridge => Box::new(Bridge::new(&site)),
            ProgramKind::FatTree => self.planned(site, FatTree::of),
            ProgramKind::Portland => self.planned(site, PortLand::of),
            ProgramKind::Tags => self.planned(site, Tags::of),
            ProgramKind::Stack => self.planned(site, |_| Some(Stack)),
            ProgramKind::Vl2 => self.planned(site, Vl2::of),
            ProgramKind::Bcube => match bcube::of(&site.plan) {
                Some(cube) if site.node < cube.servers() => Box::new(Bcube::new(&site, cube)),
                Some(_) => Box::new(EthernetSwitch::new(site)),
                None => self.unfit(),
            },
            ProgramKind::Dcell => match dcell::of(&site.plan) {
                Some(cells) if site.node < cells.servers() => Box::new(Dcell::new(&site, cells)),
                Some(_) => Box::new(EthernetSwitch::new(site)),
                None => self.unfit(),
            },
        }
    }

    fn unfit(self) -> Box<dyn Program> {
        Box::new(Unfit(Unsuitable { program: self, expected: self.expected() }))
    }

    fn planned<D: Design + 'static>(
        self,
        site: Site,
        of: impl FnOnce(&Plan) -> Option<D>,
    ) -> Box<dyn Program> {
        match of(&site.plan) {
            Some(design) => Box::new(Planned::new(site, design)),
            None => self.unfit(),
        }
    }
}

impl fmt::Display for ProgramKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Stands in for a program in an unsupported network.
struct Unfit(Unsuitable);

impl Program for Unfit {
    fn start(&mut self, _: Time, _: &mut dyn Control) {}

    fn receive_packet(&mut self, _: Time, _: Received<'_>, _: &mut dyn Control) {}

    fn failure(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}
