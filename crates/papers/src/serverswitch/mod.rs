//! ServerSwitch (Lu et al., NSDI 2011: "004").

pub mod bottleneck;
pub mod fig11;
