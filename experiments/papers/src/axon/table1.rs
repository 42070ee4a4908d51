//! Table 1 of the paper (001 §5.1; thesis 000 §4.3.2, table 4.1): six flows over three Axons with
//! two hosts each, as a line and as a ring; with real hosts it is [`axon_demo`].

pub mod simulated;

pub use axon_demo::table1::*;
