//! Needs of a fabric, checked before anything starts.

use anyhow::{Context, Result, anyhow};
use axon_external::Interpreter;
use axon_fabric::model::{Fabric, Network, ProgramSource};
use axon_fabric::needs::{self, Runtime};
use axon_sim::DataplaneKind;
use std::path::Path;

/// Refuses a fabric with needs that its data plane does not meet, before anything starts.
///
/// # Errors
/// The capability that is missing.
pub fn check_dataplane(file: &Path, chosen: DataplaneKind, fabric: &Fabric) -> Result<()> {
    let file = || file.display().to_string();
    if fabric.network != Network::Axon && chosen != DataplaneKind::Software {
        return Err(anyhow!(
            "the switches of this network have data planes of their own, not `{chosen}`; leave \
             --dataplane out"
        ))
        .with_context(file);
    }
    let capabilities = |kind| axon_sim::capabilities(kind, fabric.hop_width);
    let has = capabilities(chosen).with_context(|| format!("`{chosen}` is not simulated"))?;
    let others: Vec<_> = DataplaneKind::SIMULATED.into_iter().filter_map(capabilities).collect();
    needs::check(fabric, Runtime::Simulator, &has, &others).with_context(file)?;
    axon_sim::check_gates(fabric).map_err(|problem| anyhow!(problem)).with_context(file)
}

/// Returns the interpreter for control programs in Python, if the fabric has any.
///
/// # Errors
/// There is no interpreter, or the program cannot be read.
pub fn python(fabric: &Fabric) -> Result<Option<Interpreter>> {
    let Some(ProgramSource::Python(file)) = fabric.program.as_ref().map(|program| &program.source)
    else {
        return Ok(None);
    };
    let python = Interpreter::find().with_context(|| format!("program {}", file.display()))?;
    std::fs::File::open(file).with_context(|| format!("program {}", file.display()))?;
    Ok(Some(python))
}
