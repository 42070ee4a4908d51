//! Data Center Bridging of a fabric, checked: traffic classes, flow control, memory.
//!
//! `settings.rs` holds what is set. `resolve.rs` reads it from the file with `pauses.rs`,
//! `headroom.rs` says what each port needs, `layers.rs` says which priorities hosts know as one,
//! `plane.rs` makes the configuration of a switch's data plane, `dcbx.rs` what switches advertise,
//! `applications.rs` which packets have which priority; `congestion.rs` reads and makes congestion
//! notification and marks; `watchdog.rs` how long pauses may last that are no storm.

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
