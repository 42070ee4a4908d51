//! Behaviour of the pipeline, by sentences.

mod actions;
mod equality;
mod reference;
mod requests;
mod rig;
mod transactions;
mod twins;
