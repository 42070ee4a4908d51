//! The `program` section: control program of the switches.

use crate::units::text_value;
use axon_programs::ProgramKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// Expectation for `program` in errors; a test compares it with the programs that ship.
pub(crate) const PROGRAM_EXPECTED: &str = "the name of a program that ships, or {python: FILE}";

fn program(text: &str) -> Result<ProgramKind, &'static str> {
    let kind = ProgramKind::ALL.iter().find(|kind| kind.name() == text);
    kind.copied().ok_or(PROGRAM_EXPECTED)
}

text_value!(
    /// Name of a program that ships.
    ProgramText(ProgramKind), program, PROGRAM_EXPECTED, r"^[a-z_]+$"
);

/// A control program with settings: either its name or a Python file.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Program")]
pub struct ProgramFile {
    /// Name of a program that ships.
    pub name: Option<ProgramText>,
    /// Python file with a class `Fabric`; its path is relative to the fabric file.
    pub python: Option<PathBuf>,
    /// Sizes of the tables.
    #[serde(default)]
    pub tables: TableSizes,
}

/// Table sizes of a switch, in entries; those of the paper by default (004 section 4.1).
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TableSizes {
    /// Exact match on the destination MAC; 32768 by default.
    pub mac: Option<u32>,
    /// Exact match on the IPv4 destination; 8192 by default.
    pub ipv4: Option<u32>,
    /// Exact match on the MPLS label; 4096 by default.
    pub mpls: Option<u32>,
    /// Longest prefix match on the IPv4 destination; 6144 by default.
    pub prefix: Option<u32>,
    /// The TCAM; 2048 by default, 65536 at most.
    pub tcam: Option<u32>,
    /// Interfaces; 4096 by default, 65536 at most.
    pub interface: Option<u32>,
    /// Groups; 1024 by default, 65536 at most.
    pub group: Option<u32>,
    /// Tunnels; 1024 by default, 65536 at most.
    pub tunnel: Option<u32>,
}
