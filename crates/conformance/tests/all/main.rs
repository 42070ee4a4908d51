//! Checks of the test suite itself against our own switch and the golden vectors.

mod own_switch;
mod tester;
