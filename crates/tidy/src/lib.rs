//! Style rules of the repository, as tests (`tests/tidy`). They are a crate without dependencies,
//! so that a violation is found before all else is built.
