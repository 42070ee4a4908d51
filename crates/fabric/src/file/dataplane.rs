//! Which data plane carries the frames of a switch with real ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which data plane carries the frames of switches with real ports.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DataplaneName {
    /// The fastest that has all that the file needs and that the machine allows: tc or full.
    #[default]
    Auto,
    /// The kernel, in programs at tc: whole super-packets of hosts, rates of links held by HTB; no
    /// traffic classes.
    Tc,
    /// The kernel, in programs in drivers: the most packets, and no rates of links.
    Xdp,
    /// The process of the switch: all that there is.
    Full,
    /// The same, with routes and steps in the tables of a programmable pipeline.
    Pipeline,
}

impl fmt::Display for DataplaneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataplaneName::Auto => "auto",
            DataplaneName::Tc => "tc",
            DataplaneName::Xdp => "xdp",
            DataplaneName::Full => "full",
            DataplaneName::Pipeline => "pipeline",
        })
    }
}
