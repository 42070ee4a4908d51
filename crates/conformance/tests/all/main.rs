//! The test suite itself, held to our own switch and to the golden vectors.

mod own_switch;
mod tester;
