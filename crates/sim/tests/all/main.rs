//! Worlds: how nodes, links, hosts and controllers behave together. One binary for all of them, for
//! each would hold the whole simulator.

mod addresses;
mod baselines;
mod cable;
mod campaign;
mod comeback;
mod common;
mod congestion;
mod congestion_pauses;
mod dcbx;
mod deadlock;
mod device;
mod domain;
mod failures;
mod full;
mod host_flow_control;
mod host_reaction;
mod hostile;
mod iscsi;
mod keys;
mod lossless;
mod lossless_fabrics;
mod priorities;
mod probes;
mod programs_fabrics;
mod queueing;
mod rates;
mod restart;
mod ring;
mod routers;
mod servers;
mod start;
mod storm;
mod targeted;
mod threads;
mod traffic;
