//! ServerSwitch (Lu et al., NSDI 2011: "004").

pub mod api;
pub mod bcube;
pub mod bottleneck;
pub mod fig10;
pub mod fig11;
pub mod fig9;
pub mod marks;
pub mod qcn_delay;
pub mod requests;
pub mod responder;
pub mod routing;
pub mod rules;
pub mod seen;
