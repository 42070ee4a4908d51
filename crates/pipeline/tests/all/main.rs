//! External behaviour of the pipeline.

mod actions;
mod equality;
mod full_tables;
mod mirrors;
mod programs;
mod reference;
mod requests;
mod rig;
mod transactions;
mod twins;
