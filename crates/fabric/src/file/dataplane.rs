//! Data planes of switches, in every runtime.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Data plane of a switch. Each runtime carries some of them.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DataplaneKind {
    /// The fastest that supports all that the file needs and that the machine allows: tc or full.
    #[default]
    Auto,
    /// The kernel, in programs at tc: forwards super-packets of hosts whole, HTB limits the rates
    /// of links; no traffic classes.
    Tc,
    /// The kernel, in programs in drivers: the highest packet rate; no rates of links.
    Xdp,
    /// The process of the switch, with all features.
    #[serde(rename = "full")]
    Software,
    /// Simulator only: slow and simple, without traffic classes, flow control and cut-through.
    #[serde(skip)]
    Reference,
    /// Simulator only: software plane that refuses every tenth install, delays some, and
    /// occasionally loses its tables.
    #[serde(skip)]
    Refusing,
    /// The process of the switch, with routes and steps in the tables of a programmable pipeline.
    Pipeline,
    /// The device in gates, simulated in the process of the switch: four ports of 1 Gb/s, 32 routes
    /// each. Never selected by auto.
    Rtl,
}

impl DataplaneKind {
    /// Data planes that an operator of the simulator can select by name.
    pub const SIMULATED: [DataplaneKind; 3] =
        [DataplaneKind::Software, DataplaneKind::Reference, DataplaneKind::Pipeline];

    /// Returns the name used by the simulator and in capabilities.
    pub const fn name(self) -> &'static str {
        match self {
            DataplaneKind::Auto => "auto",
            DataplaneKind::Tc => "tc",
            DataplaneKind::Xdp => "xdp",
            DataplaneKind::Software => "software",
            DataplaneKind::Reference => "reference",
            DataplaneKind::Refusing => "refusing",
            DataplaneKind::Pipeline => "pipeline",
            DataplaneKind::Rtl => "rtl",
        }
    }

    /// Returns the name used in fabric files and on Linux, where the software plane is `full`.
    pub const fn setting(self) -> &'static str {
        match self {
            DataplaneKind::Software => "full",
            other => other.name(),
        }
    }

    /// True if the Linux kernel forwards the frames, not a process.
    pub const fn is_in_kernel(self) -> bool {
        matches!(self, DataplaneKind::Tc | DataplaneKind::Xdp)
    }
}

impl fmt::Display for DataplaneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
