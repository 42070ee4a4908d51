//! Payload caches, seen from outside.

mod buffers;
mod states;
