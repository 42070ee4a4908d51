//! Behaviour of switches and controllers through their public interface.

mod backups;
mod bonds;
mod by_source;
mod client;
mod comeback;
mod conflicts;
mod controller;
mod dcbx;
mod dhcp;
mod drain;
mod groups;
mod hostile;
mod kept;
mod loads;
mod one_switch;
mod owned_switch;
mod relay;
mod relay6;
mod reservations;
mod seek;
mod stations;
mod strangers;
mod takeover;
mod tenants;
#[path = "../../../wire/tests/tshark/mod.rs"]
mod tshark;
mod unknown_vlan;
mod vlans;
