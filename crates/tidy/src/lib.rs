//! The rules of the house, as tests (`tests/tidy`). They are a crate of their own, which stands on
//! nothing, so that a line too long is found before all else is built.
