//! Files with port traffic and node inputs. [`pcap::Writer`] writes pcapng files, and
//! [`pcap::Reader`] reads pcap and pcapng files. [`recording`] stores every input of a node for
//! replay. All of them are streams with bounded memory.
#![forbid(unsafe_code)]

pub mod pcap;
pub mod recording;
