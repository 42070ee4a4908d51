//! What a lab looks like to its operator: hosts, flows, the path between two hosts, and what its
//! ports carry. All of it is made from the status of the daemons and the fabric file.

pub mod directory;
pub mod flows;
pub mod hosts;
pub mod path;
pub mod top;

pub use directory::Directory;
