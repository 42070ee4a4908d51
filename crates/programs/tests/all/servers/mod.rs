//! Fabrics of forwarding servers: BCube and DCell, in memory.

mod bcube;
mod dcell;
mod net;
