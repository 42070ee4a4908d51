//! Exhaustive model checks of the control plane protocols.
//!
//! The checker (`stateright`) visits and checks every state that a small fabric can reach through
//! any order of messages, losses, duplicates, restarts and failures within a [`budget`]. A step
//! calls the production code of `axon-edge` and `axon-controller`: [`Edge`](axon_edge::Edge),
//! [`Controller`](axon_controller::Controller), [`Discovery`](axon_link::discovery::Discovery),
//! [`Stream`](axon_link::stream::Stream). `docs/model-checking.md` describes the environment.
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
