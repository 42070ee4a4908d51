//! A fabric file together with what it names, so that the fabric can be built where those files
//! are not.

use crate::error::LoadError;
use crate::file::{File, Topology};
use crate::load;
use crate::model::{Fabric, RouterKind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The text of a fabric file, of the key file and of the graph that it names, and the router that
/// was asked for beside it. Whoever reads it knows the fabric's key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricText {
    path: PathBuf,
    text: String,
    key: Option<String>,
    graph: Option<String>,
    router: Option<String>,
}

impl FabricText {
    /// Reads a fabric file and what it names. `router` is the one that was asked for, if it is not
    /// the file's.
    ///
    /// # Errors
    /// As [`load`](crate::load).
    pub fn read(path: &Path, router: Option<RouterKind>) -> Result<FabricText, LoadError> {
        FabricText::of(path, load::text(path)?, router)
    }

    /// The same for a text that has been read. `path` names it in errors, and what it names is
    /// relative to its folder.
    ///
    /// # Errors
    /// As [`load`](crate::load).
    pub fn of(
        path: &Path,
        text: String,
        router: Option<RouterKind>,
    ) -> Result<FabricText, LoadError> {
        let mut named = (None, None);
        load::parse_with(path, &text, |file| {
            load::read_named(path, file)?;
            named = (file.key.clone().filter(|_| file.key_file.is_some()), graph(file).cloned());
            Ok(())
        })?;
        let router = router.map(|router| router.name().to_owned());
        Ok(FabricText { path: path.into(), text, key: named.0, graph: named.1, router })
    }

    /// Builds the fabric, without what is for the simulator alone: traffic and faults. No file is
    /// read.
    ///
    /// # Errors
    /// As [`load`](crate::load): the text may come from anywhere.
    pub fn fabric(&self) -> Result<Fabric, LoadError> {
        let mut fabric = load::parse_with(&self.path, &self.text, |file| {
            file.key = self.key.clone().or(file.key.take());
            file.key_file = None;
            if let Topology::Graph(graph) = &mut file.topology {
                graph.text = self.graph.clone().unwrap_or_default();
            }
            file.traffic.clear();
            file.faults.clear();
            Ok(())
        })?;
        if let Some(router) = self.router.as_deref().and_then(RouterKind::named) {
            // Whoever asked for it had the same fabric, where it was possible.
            let _ = fabric.set_router(router);
        }
        Ok(fabric)
    }
}

/// The text of the graph, where the topology is one.
fn graph(file: &File) -> Option<&String> {
    match &file.topology {
        Topology::Graph(graph) => Some(&graph.text),
        _ => None,
    }
}

/// Its text may hold the key of a fabric, which is nobody's to read in a log.
impl std::fmt::Debug for FabricText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FabricText({}, {} bytes)", self.path.display(), self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fabric_is_built_again_without_the_files_that_it_names() {
        let folder = std::env::temp_dir().join(format!("axon-whole-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let key = "ab".repeat(32);
        std::fs::write(folder.join("key"), &key).unwrap();
        std::fs::write(folder.join("links"), "s1 s2\ns2 s3\ns3 s1\n").unwrap();
        let file = folder.join("a.yaml");
        let text = "name: a\nkey_file: key\ntopology: {graph: {file: links}}\n\
                    faults: [{at: 1s, down: [s1, s2]}]\n";
        std::fs::write(&file, text).unwrap();
        let whole = FabricText::read(&file, Some(RouterKind::UpDown)).unwrap();
        let loaded = crate::load(&file).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let built = whole.fabric().unwrap();
        assert_eq!(built.keys, [0xab; 32].into());
        assert_eq!((&built.links, &built.switches), (&loaded.links, &loaded.switches));
        assert_eq!((built.faults.len(), loaded.faults.len()), (0, 1));
        assert_eq!(built.controller.router, RouterKind::UpDown);
        assert!(!format!("{whole:?}").contains(&key));
    }
}
