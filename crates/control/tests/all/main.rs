//! How the controller and its nodes behave, seen from outside.

mod controller;
mod dcbx;
mod dhcp;
mod hostile;
#[path = "../../../wire/tests/tshark/mod.rs"]
mod tshark;
