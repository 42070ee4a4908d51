//! Snapshots that runs go on from: `--from`.

use crate::cli::label::Label;
use anyhow::{Context, Result, ensure};
use axon_fabric::model::{Fabric, RouterKind};
use axon_sim::DataplaneKind;
use axon_sim::warm::Warm;
use axon_snapshot::Snapshot;
use axon_wire::Span;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// Lets the code of this program lie where that of every snapshot lies.
///
/// # Errors
/// The kernel does not allow it.
pub fn fix_addresses() -> Result<()> {
    axon_snapshot::fix_addresses().context(
        "snapshots need a program at fixed addresses, which is not allowed here (personality(2)); \
         a container may need --security-opt seccomp=unconfined",
    )
}

/// A snapshot that a run goes on from.
pub struct Saved {
    path: PathBuf,
    label: Label,
    snapshot: Snapshot,
}

impl Saved {
    /// Opens a snapshot. The program starts again first, if its code does not lie where that of
    /// snapshots does.
    ///
    /// # Errors
    /// It is none, or of another build of axon, ...
    pub fn open(path: &Path) -> Result<Saved> {
        fix_addresses()?;
        let context = || path.display().to_string();
        let snapshot = Snapshot::open(path).with_context(context)?;
        let label = Label::read(snapshot.label()).with_context(context)?;
        Ok(Saved { path: path.to_owned(), label, snapshot })
    }

    /// The router of its controller.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn router(&self) -> Result<RouterKind> {
        let name = &self.label.router;
        RouterKind::named(name).with_context(|| format!("there is no router `{name}`"))
    }

    /// The data plane of its switches.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn dataplane(&self) -> Result<DataplaneKind> {
        let name = &self.label.dataplane;
        let found = DataplaneKind::NAMED.into_iter().find(|kind| kind.name() == name);
        found.with_context(|| format!("there is no data plane `{name}`"))
    }

    /// XXH3 of 128 bits of what it says of itself, in hexadecimal.
    pub fn hash(&self) -> String {
        format!("{:032x}", xxh3_128(self.snapshot.label()))
    }

    /// The seed of all random choices.
    pub fn seed(&self) -> u64 {
        self.label.seed
    }

    /// The run that is saved, if it may go on as one of `fabric`, whose file has this path and this
    /// text, for so long.
    ///
    /// # Errors
    /// It is damaged; it is another fabric, or other faults have happened; the duration is over.
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
