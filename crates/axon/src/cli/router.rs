//! `--router NAME`: a router in place of the file's.

use axon_fabric::model::RouterKind;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns a parser for the name of a router that lists all of them in the help.
pub(crate) fn parser() -> impl TypedValueParser<Value = RouterKind> {
    let names = RouterKind::ALL.map(RouterKind::name);
    PossibleValuesParser::new(names)
        .try_map(|name| RouterKind::named(&name).ok_or("no such router"))
}
