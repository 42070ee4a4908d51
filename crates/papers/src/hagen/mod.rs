//! Fairness in a data center (M. Hagen, University of New Hampshire 2012: "002").

pub mod bins;
pub mod conformance;
pub mod fig7_11;
pub mod fig7_7;
pub mod fig7_8;
pub mod table7_1;
pub mod watermarks;
pub mod with_qcn;
