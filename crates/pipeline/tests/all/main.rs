//! Behaviour of the pipeline, by sentences.

mod actions;
mod rig;
mod transactions;
