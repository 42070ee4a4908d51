//! Links: cables and their ends, timing, noise, and the bytes that they carry by class.

pub(crate) mod cabling;
pub mod classes;
pub mod disorder;
pub mod links;
mod noise;
pub(crate) mod port;
pub(crate) mod timing;
