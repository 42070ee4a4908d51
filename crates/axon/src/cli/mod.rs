//! Code shared by commands: options, result files, standard output and exit statuses.

pub mod capture;
pub mod daemon;
pub mod file;
pub mod lab;
pub mod policy;
pub mod real;
pub mod record;
pub mod router;
pub mod say;
pub mod stop;
pub mod usage;
pub mod world;

pub use axon_cli::{output, reserve};
