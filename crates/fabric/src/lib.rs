//! The fabric file: a YAML file that describes a network. This crate converts it to a
//! [`model::Fabric`], or returns an error with file, line, key and the expected value.
//!
//! [`load()`] reads the file, serde parses it into a `file::File`, [`topology`] expands its
//! generator, and `build` numbers ports and checks everything. [`assemble`] then derives the
//! configuration of each node.
#![forbid(unsafe_code)]

pub mod addresses;
pub mod agents;
pub mod assemble;
mod bonds;
mod build;
pub mod cam;
pub mod capture;
pub mod cycle;
pub mod dataplane;
pub mod dcb;
pub mod device;
mod document;
mod end;
mod error;
mod fabric_text;
pub mod failure;
mod fault;
mod faults;
mod file;
mod groups;
mod identity;
mod index;
pub mod ipv6;
pub mod isolation;
mod keys;
mod load;
pub mod model;
mod names;
pub mod needs;
pub mod planned;
pub mod ports;
pub mod program;
mod reach;
mod real;
mod renamed;
mod reservation;
mod router_unfit;
pub mod samples;
mod schema;
mod secret;
pub mod static_mode;
pub mod topology;
pub mod traffic;
pub mod units;
mod uplinks;
mod vlan_ports;
pub mod vlans;
mod when_full;
mod wire;

pub use document::Document;
pub use error::{LoadError, Problem};
pub use fabric_text::FabricText;
pub use load::{
    FILE_BYTES_MAX, load, load_with_warnings, parse, parse_with_warnings, placed, text as file_text,
};
pub use real::load_real;
pub use schema::json_schema;
pub use secret::{LAB_KEY, has_lab_key, key_text};
