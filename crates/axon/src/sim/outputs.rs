//! Destinations of a run's results, checked as a whole before the first of them is written.

use super::arguments::Arguments;
use super::pcap::Asked;
use super::{csv, plot};
use crate::cli::output::{self, is_standard};
use crate::cli::reserve::{Reserved, apart};
use anyhow::{Result, ensure};
use axon_fabric::model::Fabric;
use axon_fabric::traffic::App;
use std::path::PathBuf;

/// Checks that every file can be written, that none is used by two options, and that none is an
/// input of the run. Existing files keep their contents until there is something new. Returns
/// whether one of them is standard output, which then takes no report.
///
/// # Errors
/// The file that cannot be written, and the reason; nothing has been created then.
pub(crate) fn reserve(arguments: &Arguments, fabric: &Fabric, pcaps: &[Asked]) -> Result<bool> {
    let mut outputs = outputs(arguments, pcaps)?;
    let named = outputs.iter().map(|(option, path)| (option.as_str(), path.as_path()));
    let is_quiet = output::standard(named)?;
    outputs.retain(|(_, path)| !is_standard(path));
    apart(&inputs(arguments, fabric), &outputs)?;
    let mut reserved = Reserved::default();
    if let Some(folder) = &arguments.csv {
        reserved.folder(folder)?;
    }
    outputs.iter().try_for_each(|(_, path)| reserved.file(path))?;
    reserved.keep();
    Ok(is_quiet)
}

fn inputs(arguments: &Arguments, fabric: &Fabric) -> Vec<(String, PathBuf)> {
    let mut inputs = vec![("the fabric file".to_owned(), arguments.file.clone())];
    for entry in &fabric.traffic {
        if let App::Replay { file, .. } = &entry.app {
            inputs.push((format!("what {} replays", entry.name), file.clone()));
        }
    }
    inputs
}

fn outputs(arguments: &Arguments, pcaps: &[Asked]) -> Result<Vec<(String, PathBuf)>> {
    let mut outputs = Vec::new();
    let mut add = |what: &str, path: PathBuf| outputs.push((what.to_owned(), path));
    if let Some(path) = &arguments.json {
        add("--json", path.clone());
    }
    if let Some(folder) = &arguments.csv {
        ensure!(!is_standard(folder), "--csv -: there are several tables; expected a folder");
        csv::FILES.into_iter().for_each(|name| add("--csv", folder.join(name)));
    }
    if let Some(path) = &arguments.plot {
        let is_svg = path.extension().is_some_and(|extension| extension == "svg");
        ensure!(
            is_svg || is_standard(path),
            "{}: plots are drawn as SVG; expected a name such as plot.svg",
            path.display()
        );
        add("--plot", path.clone());
        if !is_standard(path) {
            add("the queues of --plot,", plot::beside(path));
        }
    }
    if let Some(path) = &arguments.trace {
        add("--trace", path.clone());
    }
    pcaps.iter().for_each(|asked| add("--pcap", asked.path.clone()));
    Ok(outputs)
}
