//! Data Center Bridging of a fabric, checked: traffic classes, flow control, memory.
//!
//! `settings.rs` defines the settings. `resolve.rs` reads them from the file with `pauses.rs`,
//! `headroom.rs` computes the headroom of each port, `layers.rs` reads the priorities that hosts
//! see as one, `plane.rs` makes the configuration of a switch's data plane, `dcbx.rs` that of LLDP
//! and DCBX, `applications.rs` the priorities of applications, `congestion.rs` reads and makes
//! congestion notification and ECN, and `watchdog.rs` bounds the pauses that congestion causes.

mod applications;
mod congestion;
mod dcbx;
mod headroom;
mod layers;
mod pauses;
mod plane;
mod resolve;
mod settings;
mod watchdog;

pub(crate) use congestion::check_hosts;
pub use dcbx::{disagreements, without_pfc};
pub(crate) use dcbx::{node_config, resolve as resolve_dcbx};
pub use headroom::{
    CableEnd, cable_ends, configured, frame_bytes, headroom, needed, quanta_needed,
};
pub(crate) use plane::config;
pub(crate) use resolve::{Beside, resolve};
pub use settings::{Advertised, Buffers, Cn, Dcb, Dcbx, Defence, FlowControl};
pub(crate) use watchdog::check_detection;
pub use watchdog::draining;
