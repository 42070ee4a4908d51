//! The `dataplane` setting of switches with real ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Data plane of switches with real ports.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DataplaneName {
    /// The fastest that supports all that the file needs and that the machine allows: tc or full.
    #[default]
    Auto,
    /// The kernel, in programs at tc: forwards super-packets of hosts whole, HTB limits the rates
    /// of links; no traffic classes.
    Tc,
    /// The kernel, in programs in drivers: the highest packet rate; no rates of links.
    Xdp,
    /// The process of the switch, with all features.
    Full,
    /// The process of the switch, with routes and steps in the tables of a programmable pipeline.
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
