//! Where a run's results go: checked as a whole before the first of them is touched.

use super::arguments::Arguments;
use super::pcap::Asked;
use super::{csv, plot};
use crate::reserve::{Reserved, apart};
use crate::say::Usage;
use anyhow::{Result, ensure};
use axon_fabric::model::Fabric;
use axon_fabric::traffic::App;
use std::path::{Path, PathBuf};

/// Sees that every file can be written, that none is there for two options, and that none is
/// what the run reads. Those that exist keep what is in them until there is something new.
///
/// # Errors
/// Which cannot be, and why; then nothing has been made.
pub fn reserve(arguments: &Arguments, fabric: &Fabric, pcaps: &[Asked]) -> Result<()> {
    let outputs = outputs(arguments, pcaps)?;
    apart(&inputs(arguments, fabric), &outputs)?;
    let mut reserved = Reserved::default();
    if let Some(folder) = &arguments.csv {
        reserved.folder(folder)?;
    }
    outputs.iter().try_for_each(|(_, path)| reserved.file(path))?;
    reserved.keep();
    Ok(())
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
    let standard = Path::new("-");
    let mut outputs = Vec::new();
    let mut add = |what: &str, path: PathBuf| outputs.push((what.to_owned(), path));
    if let Some(path) = arguments.json.as_ref().filter(|path| *path != standard) {
        add("--json", path.clone());
    }
    if let Some(folder) = &arguments.csv {
        csv::FILES.into_iter().for_each(|name| add("--csv", folder.join(name)));
    }
    if let Some(path) = &arguments.plot {
        let svg = path.extension().is_some_and(|extension| extension == "svg");
        ensure!(
            svg,
            "{}: plots are drawn as SVG; expected a name such as plot.svg",
            path.display()
        );
        add("--plot", path.clone());
        add("the queues of --plot,", plot::beside(path));
    }
    if let Some(path) = &arguments.trace {
        add("--trace", path.clone());
    }
    pcaps.iter().for_each(|asked| add("--pcap", asked.path.clone()));
    if let Some((what, _)) = outputs.iter().find(|(_, path)| path == standard) {
        let text = format!(
            "{what} -: standard output is for the report; expected a file, such as /dev/stderr"
        );
        return Err(Usage(text).into());
    }
    Ok(outputs)
}
