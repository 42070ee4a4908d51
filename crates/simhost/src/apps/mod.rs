//! Host applications: sources, sinks, clients and servers, one file each.
//!
//! An application is polled at its deadline and after frames for the IP stack, and called when one
//! of its connections has changed. It uses TCP sockets and datagrams of its own. Transmission times
//! are exact.

mod app;
mod arp;
mod beginning;
mod caller;
mod collective;
mod file_store;
mod files;
mod id;
mod iscsi;
mod on_off;
mod plan;
mod raw;
mod replay;
mod replay_sink;
mod request;
mod respond;
mod stats;
mod stream;
mod tcp;
mod tcp_stream;
mod udp;

pub use arp::ArpPlan;
pub use axon_tcp::Algorithm as Congestion;
pub use caller::Transport;
pub use collective::{CollectivePlan, Step};
pub use files::{FilePlan, POSTMARK};
pub use id::AppId;
pub use iscsi::{InitiatorPlan, IscsiLimits, Processor, TargetPlan};
pub use on_off::{Burst, OnOffPlan};
pub use plan::Plan;
pub use raw::RawPlan;
pub use replay::{ReplayPlan, Rewrite, sent_bytes};
pub use replay_sink::Likenesses;
pub use request::RequestPlan;
pub use respond::{Protocol, RespondPlan};
pub use stats::{FileStats, FlowStats, Histogram, Received, rate};
pub use tcp::{TcpOptions, TcpPlan};
pub use udp::UdpPlan;

pub(crate) use app::{App, Apps};
