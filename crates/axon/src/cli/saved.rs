//! Snapshots from which runs continue: `--from`.

use crate::cli::label::Label;
use anyhow::{Context, Result, ensure};
use axon_fabric::model::{Fabric, RouterKind};
use axon_sim::DataplaneKind;
use axon_sim::warm::Warm;
use axon_snapshot::Snapshot;
use axon_wire::Span;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// Fixes the addresses of this program's code to those of every snapshot.
///
/// # Errors
/// The kernel does not allow it.
pub fn fix_addresses() -> Result<()> {
    axon_snapshot::fix_addresses().context(
        "snapshots need a program at fixed addresses, which is not allowed here (personality(2)); \
         a container may need --security-opt seccomp=unconfined",
    )
}

/// A snapshot from which a run continues.
pub struct Saved {
    path: PathBuf,
    label: Label,
    snapshot: Snapshot,
}

impl Saved {
    /// Opens a snapshot. The program restarts first, if its code is not at the addresses of
    /// snapshots.
    ///
    /// # Errors
    /// The file is not a snapshot, or is one of another build of axon.
    pub fn open(path: &Path) -> Result<Saved> {
        fix_addresses()?;
        let context = || path.display().to_string();
        let snapshot = Snapshot::open(path).with_context(context)?;
        let label = Label::read(snapshot.label()).with_context(context)?;
        Ok(Saved { path: path.to_owned(), label, snapshot })
    }

    /// Returns the router of the controller.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn router(&self) -> Result<RouterKind> {
        let name = &self.label.router;
        RouterKind::named(name).with_context(|| format!("there is no router `{name}`"))
    }

    /// Returns the data plane of the switches.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn dataplane(&self) -> Result<DataplaneKind> {
        let name = &self.label.dataplane;
        let found = DataplaneKind::NAMED.into_iter().find(|kind| kind.name() == name);
        found.with_context(|| format!("there is no data plane `{name}`"))
    }

    /// Returns XXH3 of 128 bits of the label, in hexadecimal.
    pub fn hash(&self) -> String {
        format!("{:032x}", xxh3_128(self.snapshot.label()))
    }

    /// Returns the seed of all random choices.
    pub fn seed(&self) -> u64 {
        self.label.seed
    }

    /// Returns the saved run, if it can continue with `fabric`, whose file has this path and this
    /// text, for this duration.
    ///
    /// # Errors
    /// The snapshot is damaged; it is of another fabric, or other faults have happened; the
    /// duration is over.
    pub fn restore(
        self,
        fabric: &Fabric,
        (file, text): (&Path, &str),
        duration: Option<Span>,
    ) -> Result<Box<Warm>> {
        let Saved { path, label, snapshot } = self;
        let context = || path.display().to_string();
        let warm = snapshot.restore::<Warm>().with_context(context)?;
        warm.accepts(fabric)
            .or_else(|unlike| label.refuse(file, text, unlike))
            .with_context(context)?;
        let ran = warm.now().since(warm.ready_at());
        if let Some(duration) = duration {
            ensure!(duration >= ran, "--duration {duration}: {} has run for {ran}", path.display());
        }
        Ok(warm)
    }
}
