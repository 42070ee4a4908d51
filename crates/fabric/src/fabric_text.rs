//! A fabric file together with the files that it refers to, so that the fabric can be built on a
//! machine without them.

use crate::error::LoadError;
use crate::file::{File, Topology};
use crate::load;
use crate::model::{Fabric, RouterKind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Text of a fabric file, of its key file and graph file, and the router chosen in addition. It
/// contains the fabric's key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricText {
    path: PathBuf,
    text: String,
    key: Option<String>,
    graph: Option<String>,
    router: Option<String>,
}

impl FabricText {
    /// Reads a fabric file and the files that it refers to. `router` is the chosen one, if it is
    /// not the file's.
    ///
    /// # Errors
    /// As for [`load`](crate::load).
    pub fn read(path: &Path, router: Option<RouterKind>) -> Result<FabricText, LoadError> {
        FabricText::of(path, load::text(path)?, router)
    }

    /// Takes the text of a fabric file and reads the files that it refers to. `path` is its name in
    /// errors, and other paths are relative to its folder.
    ///
    /// # Errors
    /// As for [`load`](crate::load).
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

    /// Builds the fabric, without traffic and faults, which are for the simulator only. No file is
    /// read.
    ///
    /// # Errors
    /// As for [`load`](crate::load): the text may come from anywhere.
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
            // The router was checked against this fabric when it was chosen.
            let _ = fabric.set_router(router);
        }
        Ok(fabric)
    }
}

/// Returns the text of the graph, if the topology is one.
fn graph(file: &File) -> Option<&String> {
    match &file.topology {
        Topology::Graph(graph) => Some(&graph.text),
        _ => None,
    }
}

/// The text may contain the key of a fabric, which must not appear in a log.
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
