//! The fabric file: one YAML file says what to build, and this crate answers with a
//! [`model::Fabric`] or with an error that names file, line, key and what was expected.
#![forbid(unsafe_code)]

pub mod model;
