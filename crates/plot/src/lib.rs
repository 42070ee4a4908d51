//! SVG plots for `axon sim` and the experiments: lines over numbers, or bars over names.

#![forbid(unsafe_code)]

mod number;
mod plot;
pub mod rates;
mod strokes;

pub use number::number_text;
pub use plot::{Axis, Plot, Scale, Series};
