//! Congestion: marks in the IP header (ECN), quantized congestion notification (QCN), and the
//! congestion message of a full output (thesis 000 §3.2.1).

pub(crate) mod cnm;
pub mod ecn;
pub(crate) mod host_edge;
pub(crate) mod message;
pub mod notification;
pub mod qcn;
