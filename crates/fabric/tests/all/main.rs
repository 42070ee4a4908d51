//! The files of `tests/errors` and `scenarios/`, as a user would load them.

mod errors;
mod scenarios;
