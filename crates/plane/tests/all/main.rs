//! External behaviour of a plane at its ports.

mod classes;
mod congestion;
mod cut_through;
mod layers;
mod link;
mod masquerading;
mod model;
mod plane;
mod probes;
mod qcn_loop;
mod reference;
#[path = "../../../wire/tests/samples/mod.rs"]
mod samples;
mod schedule;
mod schedule_weights;
mod vectors;
