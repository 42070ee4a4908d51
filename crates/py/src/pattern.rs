//! TCAM values and masks for ranges and prefixes, and TCAM entries with priorities.

use crate::action::PyAction;
use crate::arguments::{Ipv4Prefix, Octets};
use crate::change::PyChange;
use axon_pipeline::expand::{self, Pattern};
use axon_pipeline::ordered::{Ranked, Window, arrange};
use axon_pipeline::{Change, TcamEntry, Udlk, UdlkId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Value and mask.
type Plain<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);
/// Priority, key, value, mask, action.
type PlainRanked<'py> = (u32, u8, Octets, Octets, PyRef<'py, PyAction>);

fn plain<'py>(py: Python<'py>, pattern: &Pattern) -> Plain<'py> {
    (PyBytes::new(py, &pattern.value), PyBytes::new(py, &pattern.mask))
}

fn invalid(error: impl std::error::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns the smallest set of values and masks that match `first` to `last` in a field of `bytes`
/// bytes.
#[pyfunction]
pub(crate) fn range_patterns(
    py: Python<'_>,
    first: u32,
    last: u32,
    bytes: usize,
) -> PyResult<Vec<Plain<'_>>> {
    let all = expand::range(first, last, bytes).map_err(invalid)?;
    Ok(all.iter().map(|pattern| plain(py, pattern)).collect())
}

/// Returns the value and mask that match the addresses in a prefix.
#[pyfunction]
pub(crate) fn prefix_pattern(py: Python<'_>, prefix: Ipv4Prefix) -> PyResult<Plain<'_>> {
    expand::prefix(prefix.0).map(|pattern| plain(py, &pattern)).map_err(invalid)
}

/// Returns all concatenations of one value and mask from each field. Raises ValueError if there are
/// more than `max`.
#[pyfunction]
pub(crate) fn combine_patterns(
    py: Python<'_>,
    fields: Vec<Vec<(Octets, Octets)>>,
    max: usize,
) -> PyResult<Vec<Plain<'_>>> {
    let pattern = |(value, mask): (Octets, Octets)| Pattern { value: value.0, mask: mask.0 };
    let field = |field: Vec<_>| field.into_iter().map(pattern).collect();
    let fields: Vec<Vec<Pattern>> = fields.into_iter().map(field).collect();
    let all = expand::combine(&fields, max).map_err(invalid)?;
    Ok(all.iter().map(|pattern| plain(py, pattern)).collect())
}

/// Returns the changes after which the `count` TCAM indexes starting at `first` contain exactly
/// these entries, in order of priority.
#[pyfunction]
pub(crate) fn arrange_tcam(
    entries: Vec<PlainRanked<'_>>,
    keys: Vec<PyChange>,
    first: u16,
    count: u32,
) -> PyResult<Vec<PyChange>> {
    let key = |change: PyChange| match change.0 {
        Change::Udlk(id, Some(udlk)) => Ok((id, udlk)),
        _ => Err(PyValueError::new_err("no key: expected Change.udlk(...)")),
    };
    let keys = keys.into_iter().map(key).collect::<PyResult<Vec<(UdlkId, Udlk)>>>()?;
    let ranked = |(priority, udlk, value, mask, action): PlainRanked<'_>| {
        let (value, mask, action) = (value.0, mask.0, action.0.clone());
        Ranked { priority, entry: TcamEntry { udlk: UdlkId(udlk), value, mask, action } }
    };
    let entries: Vec<Ranked> = entries.into_iter().map(ranked).collect();
    let changes = arrange(&entries, &keys, Window { first, count }).map_err(invalid)?;
    Ok(changes.into_iter().map(PyChange).collect())
}
