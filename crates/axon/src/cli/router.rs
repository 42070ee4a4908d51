//! `--router NAME`: another router than the file's.

use axon_fabric::model::RouterKind;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Takes the name of a router, and lists all of them in the help.
pub fn parser() -> impl TypedValueParser<Value = RouterKind> {
    let names = RouterKind::ALL.map(RouterKind::name);
    PossibleValuesParser::new(names)
        .try_map(|name| RouterKind::named(&name).ok_or("no such router"))
}
