//! Snapshots: a value with all that it owns, saved as an image of its memory, and mapped by another
//! process of the same program.
//!
//! A simulation state is millions of values of hundreds of types, some of them of libraries that
//! cannot be serialised. So nothing is serialised: a program that makes a snapshot first allocates
//! all memory from one region of fixed address ([`Heap::collect`]), makes the value, and saves the
//! region. Another process maps the file, privately, at the same address: pointers stay valid,
//! pages are read on access, and writes go to copies. A snapshot restores in constant time, apart
//! from one check for flipped bits, and processes that continue from one share its unchanged pages.
//!
//! To use it:
//!
//! 1. [`Heap`] is the program's `#[global_allocator]`; the system's until step 3.
//! 2. [`fix_addresses`] first: the code must have the same address, since values point to it.
//! 3. To save: [`Heap::collect`], make the value, [`save`].
//! 4. To continue: [`Snapshot::open`], check its label, [`Snapshot::restore`].
//!
//! The value must not hold files, threads, or other resources of the system.
//!
//! A snapshot is equivalent to a program: restoring it can run its contents. [`Snapshot::open`]
//! refuses one of another program, another build, another kind of processor, or with flipped bits;
//! it does not protect against a maliciously made one.

mod classes;
mod file;
mod heap;
mod machine;
mod region;

pub use file::{Snapshot, save};
pub use heap::Heap;
pub use machine::fix_addresses;
