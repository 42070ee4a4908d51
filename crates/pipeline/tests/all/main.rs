//! Behaviour of the pipeline, by sentences.

mod actions;
mod equality;
mod programs;
mod reference;
mod requests;
mod rig;
mod transactions;
mod twins;
