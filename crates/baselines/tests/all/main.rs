//! External behaviour of the nodes of the other networks.

mod bpdu;
mod hostile;
#[path = "../../../wire/tests/tshark/mod.rs"]
mod tshark;
