//! How the nodes of the other networks behave, seen from outside.

mod bpdu;
mod hostile;
#[path = "../../../wire/tests/tshark/mod.rs"]
mod tshark;
