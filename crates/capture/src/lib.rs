//! What ports carry, and what nodes are given, as files. [`pcap::Writer`] writes pcapng files,
//! [`pcap::Reader`] reads pcap and pcapng files; [`recording`] holds every input of a node, so
//! that it can be replayed. All are streams with bounded memory.
#![forbid(unsafe_code)]

pub mod pcap;
pub mod recording;
