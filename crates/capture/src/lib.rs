//! Captures of what ports carry. [`pcap::Writer`] writes pcapng files, [`pcap::Reader`] reads
//! pcap and pcapng files, both as streams with bounded memory.
#![forbid(unsafe_code)]

pub mod pcap;
