//! `axon conformance`: requirements of the Data Center Bridging standards as named cases.
//!
//! A case ([`case::Case`]) is a name, a clause, a requirement, and a function. It acts through a
//! [`bench::Bench`] on a [`rig::Rig`]: a tester with ports at the device under test. There are two
//! rigs. [`simulated`] puts our own switch and controller between simulated testers. [`linux`]
//! reaches any device through packet sockets.
//!
//! The tester writes and reads its frames in [`frames`], following the byte layouts. It does not
//! use the codecs of `axon-wire`, because those are under test.
#![forbid(unsafe_code)]

pub mod bench;
pub mod case;
pub mod cases;
pub mod frames;
pub mod interpretations;
pub mod linux;
pub mod report;
pub mod rig;
pub mod setup;
pub mod simulated;
pub mod station;
