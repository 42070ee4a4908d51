//! Chain.
pub fn every_value() {}
pub fn tags() {}
pub fn long_routes() {}
