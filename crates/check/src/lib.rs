//! Exhaustive model checks of the protocols of the control plane.
//!
//! The checker (`stateright`) visits and checks every state that a small fabric can reach by any
//! order of messages, losses, duplicates, restarts and failures within a [`budget`]. A step calls
//! the production code of `axon-control`: [`Edge`](axon_control::edge::Edge),
//! [`Controller`](axon_control::controller::Controller),
//! [`Discovery`](axon_control::discovery::Discovery), [`Stream`](axon_control::stream::Stream).
//! `docs/model-checking.md` describes the environment.
#![forbid(unsafe_code)]

pub mod budget;
pub mod catalogue;
pub mod discovery;
pub mod fabric;
pub mod flight;
pub mod part;
pub mod print;
pub mod run;
pub mod stream;
