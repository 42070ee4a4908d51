//! Label of a saved simulation: the run that it was made of.

use anyhow::{Context, Result, bail};
use axon_fabric::Document;
use axon_fabric::model::Fabric;
use axon_sim::run::{Options, Unlike};
use axon_sim::warm::Warm;
use axon_wire::Time;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Label of a snapshot.
#[derive(Serialize, Deserialize)]
pub struct Label {
    /// Name of the fabric.
    pub fabric: String,
    /// Text of the fabric file.
    text: String,
    /// Router of the controller.
    pub router: String,
    /// Data plane of the switches.
    pub dataplane: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time at which the network was ready, in ticks.
    ready_at: u64,
    /// Hash of all events so far.
    pub trace_hash: u64,
}

impl Label {
    /// Creates the label of a run of this fabric, whose file has this text.
    pub fn of(fabric: &Fabric, text: String, options: &Options, warm: &Warm) -> Label {
        Label {
            fabric: fabric.name.clone(),
            text,
            router: fabric.controller.router.name().to_owned(),
            dataplane: options.dataplane.name().to_owned(),
            seed: options.seed.unwrap_or(fabric.seed),
            ready_at: warm.ready_at().ticks(),
            trace_hash: warm.trace_hash(),
        }
    }

    /// Parses a label.
    ///
    /// # Errors
    /// The bytes are not a label.
    pub fn read(bytes: &[u8]) -> Result<Label> {
        serde_json::from_slice(bytes).context("what it is of cannot be read")
    }

    /// Serialises the label.
    ///
    /// # Errors
    /// None that is known.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Returns the time at which the network was ready.
    pub fn ready_at(&self) -> Time {
        Time::from_ticks(self.ready_at)
    }

    /// Returns the error for a fabric file with which the simulation cannot continue.
    ///
    /// # Errors
    /// Always: the difference.
    pub fn refuse(&self, file: &Path, text: &str, unlike: Unlike) -> Result<()> {
        let name = &self.fabric;
        match unlike {
            Unlike::Fabric => {
                let documents = Document::of(text).ok().zip(Document::of(&self.text).ok());
                let key = documents.and_then(|(ours, saved)| saved.difference(&ours, &["faults"]));
                let differs = match key {
                    Some(key) if !key.is_empty() => format!("`{key}` differs"),
                    _ => "a file that it names differs".to_owned(),
                };
                bail!(
                    "it is of another fabric file, of {name}, than {}: {differs}; only `faults` \
                    that are still to come may",
                    file.display()
                )
            }
            Unlike::Past(at) => bail!(
                "the faults of {} are others than had happened: first at {at}",
                file.display()
            ),
            Unlike::Rates => bail!(
                "with the faults of {} links have other rates at their slowest or fastest, by \
                 which the saved switches and hosts are set up; expected the same ones",
                file.display()
            ),
        }
    }
}
