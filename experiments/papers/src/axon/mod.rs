//! The Axon thesis (Foss, Rice University 2010: "000") and paper (ANCS 2010: "001").

pub mod cam;
pub mod fig4_1;
pub mod fig4_10;
pub mod fig4_4;
pub mod fig4_5;
pub mod fig4_7;
pub mod fig4_9;
pub mod fig6a;
pub mod fig6b;
pub mod fig6c;
mod gates;
pub mod init;
pub mod latency;
pub mod line;
mod planned;
pub mod scale;
pub mod table1;
pub mod table2;
pub mod table4_2;
pub mod table4_3;

pub use axon_demo as live;
