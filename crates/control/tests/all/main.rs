//! How the controller and its nodes behave, seen from outside.

mod bpdu;
mod controller;
mod dcbx;
mod dhcp;
mod hostile;
mod hostile_baselines;
#[path = "../../../wire/tests/tshark/mod.rs"]
mod tshark;
