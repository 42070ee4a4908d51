//! The Axon thesis (Foss, Rice University 2010: "000") and paper (ANCS 2010: "001").

pub mod cam;
pub mod fig4_9;
pub mod line;
pub mod live;
pub mod table1;
pub mod table4_3;
