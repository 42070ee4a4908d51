//! Tests of the external behaviour of payload caches.

mod buffers;
mod states;
