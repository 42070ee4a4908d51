//! Snapshots: a value and all that it holds, saved as an image of its memory, and mapped again by
//! another process of the same program.
//!
//! A world of a simulation is millions of values of hundreds of types, some of them of libraries
//! that cannot be written out. So nothing is written out: a program that wants to save one first
//! lets all memory come from one region of fixed address ([`Heap::collect`]), makes the value, and
//! saves the region. Another process maps the file, privately, at the same address: pointers are
//! right as they are, pages are read when they are touched, and what is written is a copy. So a
//! snapshot costs no time to restore, whatever its size, beside one look for flipped bits; and
//! many processes that go on from one share what none of them changes.
//!
//! In plain English, to use it:
//!
//! 1. [`Heap`] is the program's `#[global_allocator]`; the system's until step 3.
//! 2. [`fix_addresses`] first: the code has to lie where it lay, since values point to it.
//! 3. To save: [`Heap::collect`], make the value, [`save`].
//! 4. To go on: [`Snapshot::open`], look at its label, [`Snapshot::restore`].
//!
//! What such a value must not hold: files, threads, and anything else that is the system's.
//!
//! A snapshot is as a program: whoever restores it runs what is in it. [`Snapshot::open`] refuses
//! one of another program, another build, another kind of processor, or with flipped bits; it is
//! no protection against somebody who makes one with bad intent.

mod classes;
mod file;
mod heap;
mod machine;
mod region;

pub use file::{Snapshot, save};
pub use heap::Heap;
pub use machine::fix_addresses;
