//! `axon conformance`: what the standards of Data Center Bridging ask of a device, as named cases.
//!
//! A case ([`case::Case`]) is a name, a clause, what the clause asks for, and a function. It acts
//! through a [`bench::Bench`] on a [`rig::Rig`]: a tester with ports at the device under test.
//! There are two rigs: [`simulated`] puts our own switch and controller between simulated testers,
//! [`linux`] sends and receives by packet sockets, whatever stands at the other end.
//!
//! The tester writes and reads its frames in [`frames`], from the byte layouts and not with
//! the codecs of `axon-wire`: those are part of what is tested.
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
