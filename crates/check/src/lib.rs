//! Exhaustive model checks of the protocols of the control plane.
//!
//! In plain English: the checker (`stateright`) visits every state that a small fabric can come to
//! by any order of messages, losses, duplicates, restarts and failures within a
//! [`budget`], and looks at each. A step calls the very code of `axon-control` that the nodes run:
//! [`Edge`](axon_control::edge::Edge), [`Controller`](axon_control::controller::Controller),
//! [`Discovery`](axon_control::discovery::Discovery), [`Stream`](axon_control::stream::Stream).
//! What is around them is `docs/model-checking.md`.
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
