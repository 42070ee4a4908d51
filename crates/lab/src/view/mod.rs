//! Operator's views of a lab: hosts, flows, the path between two hosts, and the load on ports. All
//! are built from the status of the daemons and the fabric file.

pub mod directory;
pub mod flows;
pub mod hosts;
pub mod path;
pub mod top;

pub use directory::Directory;
