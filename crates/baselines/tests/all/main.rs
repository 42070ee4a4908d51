//! External behaviour of the nodes of the networks with which Axon is compared.

mod bpdu;
mod hostile;
#[path = "../../../wire/tests/tshark/mod.rs"]
mod tshark;
