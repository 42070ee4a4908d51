//! Fairness in a data center (M. Hagen, University of New Hampshire 2012: "002").

pub mod bins;
pub mod cna;
pub mod conformance;
pub mod contest;
pub mod fig4_2;
pub mod fig5_2;
pub mod fig5_4;
pub mod fig5_5;
pub mod fig5_6;
pub mod fig5_8;
pub mod fig6_1;
pub mod fig6_10;
pub mod fig6_3;
pub mod fig6_6;
pub mod fig6_8;
pub mod fig7_11;
pub mod fig7_7;
pub mod fig7_8;
pub mod iscsi;
pub mod table7_1;
pub mod watermarks;
pub mod with_qcn;
