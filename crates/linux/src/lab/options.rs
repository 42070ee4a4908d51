//! How a lab is asked for, and what became of that.

use serde::{Deserialize, Serialize};

/// The first argument of a process that the lab has started from its own program.
pub(super) const PART: &str = "lab-part";

/// How to start a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpOptions {
    /// How long switches may take to find the controller, in milliseconds.
    pub timeout_ms: u64,
    /// Switches whose ports are captured, to `s1.pcapng` in the lab's directory.
    pub capture: Vec<String>,
    /// The name of the router, if it is not to be the file's.
    pub router: Option<String>,
}

impl Default for UpOptions {
    fn default() -> UpOptions {
        UpOptions { timeout_ms: 30_000, capture: Vec::new(), router: None }
    }
}

/// What became of `up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Switches that have not found the controller in time; the lab runs all the same.
    pub missing: Vec<String>,
    /// How many switches there are.
    pub switches: usize,
    /// How many hosts there are.
    pub hosts: usize,
    /// What the user should know about this machine.
    pub notes: Vec<String>,
}
