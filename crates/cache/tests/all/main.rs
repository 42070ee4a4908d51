//! External behaviour of payload caches.

mod buffers;
mod states;
