//! Sources that a row measures, read in the repository on demand.
//!
//! The search starts with the file of the row. A file of this crate leads to the modules that it
//! names by `crate::` and `super::`, to its child modules, and to the files that it includes. The
//! workspace crates that these files name are part of the row, and so are those that the library of
//! such a crate names, and so on. A crate's programs (`src/main.rs`, `src/bin`) lead nowhere: no
//! row runs them. Neither does [`super`], which runs and shows rows, nor do tests and comments.
//!
//! A path that begins with an imported module, such as `line::check` after `use super::line`, leads
//! to nothing more than the import does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of this crate's sources, from the root of the repository.
const PAPERS: &str = "experiments/papers/src";
/// Folders of the workspace that hold crates.
const ROOMS: [&str; 2] = ["crates", "experiments"];
/// Module of this crate that is part of no row.
const FRAME: &str = "reproduce";
/// Prefix of the names of our crates in code.
const OURS: &str = "axon_";

/// Sources of a repository.
pub struct Sources {
    root: PathBuf,
    /// Folder of each crate, by name.
    folders: BTreeMap<String, String>,
    /// Paths that the library of the crate in a folder leads to: folders of other crates, and files
    /// outside of its own folder.
    leads: BTreeMap<String, BTreeSet<String>>,
}

impl Sources {
    /// Returns the sources of the repository of the working directory, if there is one.
    pub(crate) fn here() -> Option<Sources> {
        let output = Command::new("git").args(["rev-parse", "--show-toplevel"]).output().ok()?;
        let root = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| Sources::read(Path::new(root.trim_end())))?
    }

    /// Reads the sources below `root`, if it has crates.
    pub(crate) fn read(root: &Path) -> Option<Sources> {
        let (mut folders, leads) = (BTreeMap::new(), BTreeMap::new());
        for room in ROOMS {
            for folder in fs::read_dir(root.join(room)).ok()?.flatten() {
                let name = folder.file_name().into_string().ok()?;
                folders.insert(name.clone(), format!("{room}/{name}"));
            }
        }
        // All names must be known before any is looked up.
        let mut sources = Sources { root: root.to_owned(), folders, leads };
        for folder in sources.folders.clone().into_values() {
            let mut leads = BTreeSet::new();
            for file in library(root, &format!("{folder}/src")) {
                let text = code(&fs::read_to_string(root.join(&file)).ok()?);
                leads.extend(sources.crates_named(&text));
                leads.extend(included(&file, &text));
            }
            sources.leads.insert(folder, leads);
        }
        Some(sources)
    }

    /// Returns the root of the repository.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the paths that the row in `file` measures, from the root: files of this crate,
    /// folders of others. `None` if one of the files is missing.
    pub(crate) fn of(&self, file: &str) -> Option<BTreeSet<String>> {
        let (mut found, mut crates) = (BTreeSet::new(), Vec::new());
        let mut ahead = vec![file.to_owned()];
        while let Some(file) = ahead.pop() {
            if found.contains(&file) {
                continue;
            }
            let text = code(&fs::read_to_string(self.root.join(&file)).ok()?);
            ahead.extend(self.modules(&file, &text));
            crates.extend(self.crates_named(&text));
            found.extend(included(&file, &text));
            found.insert(file);
        }
        while let Some(path) = crates.pop() {
            let leads = self.leads.get(&path);
            if found.insert(path.clone()) {
                crates.extend(leads.into_iter().flatten().cloned());
            }
        }
        Some(found)
    }

    /// Returns the folders of the crates that a text names.
    fn crates_named(&self, text: &str) -> BTreeSet<String> {
        let names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names = names.filter_map(|word| word.strip_prefix(OURS)).map(|of| of.replace('_', "-"));
        names.filter_map(|name| self.folders.get(&name).cloned()).collect()
    }

    /// Returns the files of the modules that a file of this crate leads to.
    fn modules(&self, file: &str, text: &str) -> Vec<String> {
        let inside = file.trim_start_matches(PAPERS).trim_end_matches(".rs").trim_matches('/');
        let own: Vec<&str> = inside.trim_end_matches("/mod").split('/').collect();
        let mut paths = Vec::new();
        for (word, depth) in [("crate::", own.len()), ("super::", 1)] {
            for (at, _) in text.match_indices(word) {
                // One level more for each `super::` before this one.
                let supers = text[..at].len() - text[..at].trim_end_matches("super::").len();
                let up = (depth + supers / "super::".len()).min(own.len());
                let base = own[..own.len() - up].iter().map(|&name| name.to_owned()).collect();
                tree(&mut &text[at + word.len()..], base, &mut paths);
            }
        }
        // The module of a paper only lists its rows.
        let children = text.lines().filter(|_| own.len() > 1).filter_map(|line| {
            let name = line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?;
            Some(own.iter().copied().chain([name]).map(str::to_owned).collect())
        });
        paths.extend(children);
        paths.retain(|path| path.first().is_some_and(|first| first != FRAME));
        paths.iter().filter_map(|path| self.file_of(path)).collect()
    }

    /// Returns the file of the longest part of a path that is a module.
    fn file_of(&self, path: &[String]) -> Option<String> {
        let files = (1..=path.len()).rev().flat_map(|length| {
            let module = format!("{PAPERS}/{}", path[..length].join("/"));
            [format!("{module}.rs"), format!("{module}/mod.rs")]
        });
        files.into_iter().find(|file| self.root.join(file).is_file())
    }
}

/// Parses the text after `crate::`: a path, or a `use` tree with braces.
fn tree(text: &mut &str, mut path: Vec<String>, found: &mut Vec<Vec<String>>) {
    *text = text.trim_start();
    if let Some(rest) = text.strip_prefix('{') {
        *text = rest;
        while !text.is_empty() && !text.trim_start().starts_with('}') {
            tree(text, path.clone(), found);
            *text = text.trim_start().trim_start_matches(|c| c != ',' && c != '}');
            *text = text.trim_start_matches(',');
        }
        *text = text.trim_start().trim_start_matches('}');
        return;
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    path.push(name.to_owned());
    match rest.strip_prefix("::") {
        Some(rest) => {
            *text = rest;
            tree(text, path, found);
        }
        None => {
            *text = rest;
            found.push(path);
        }
    }
}

/// Returns a file without the tests at its bottom, comments, and included documentation pages.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.starts_with("#[doc")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the files included by a file: `include_str!("line.yaml")`.
fn included(file: &str, text: &str) -> Vec<String> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let names = text.split("include_").skip(1).filter_map(|rest| {
        let (macro_name, rest) = rest.split_once("!(\"")?;
        let is_macro = macro_name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_macro.then_some(rest.split_once('"')?.0)
    });
    let path = |name: &str| {
        let mut parts: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
        for part in name.split('/') {
            match part {
                ".." => _ = parts.pop(),
                part => parts.push(part),
            }
        }
        parts.join("/")
    };
    // Files in the folder of their own crate are covered by that folder.
    let own = file.split('/').take(2).collect::<Vec<_>>().join("/") + "/";
    let is_papers = file.starts_with(PAPERS);
    names.map(path).filter(|path| is_papers || !path.starts_with(&own)).collect()
}

/// Returns the files of a library, from the root.
fn library(root: &Path, folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{folder}/{name}");
        let is_program = path.ends_with("/src/main.rs") || path.ends_with("/src/bin");
        if entry.path().is_dir() && !is_program {
            files.extend(library(root, &path));
        } else if name.ends_with(".rs") && !is_program {
            files.push(path);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;

    fn sources() -> Sources {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Sources::read(&root).expect("a checkout")
    }

    fn of(id: &str) -> BTreeSet<String> {
        let row = ALL.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row {id}"));
        sources().of(row.file).unwrap_or_else(|| panic!("{}", row.file))
    }

    /// Asserts that a row leads to the folders of `crates`, and not to those of `others`.
    fn check(id: &str, crates: &[&str], others: &[&str]) {
        let paths = of(id);
        let has = |name: &&&str| ROOMS.iter().any(|room| paths.contains(&format!("{room}/{name}")));
        let missing: Vec<&&str> = crates.iter().filter(|name| !has(name)).collect();
        let more: Vec<&&str> = others.iter().filter(has).collect();
        assert!(missing.is_empty() && more.is_empty(), "{id}: without {missing:?}, with {more:?}");
    }

    #[test]
    fn every_row_leads_to_paths_that_are_there_with_its_own_file_among_them() {
        let sources = sources();
        for row in ALL {
            let paths = sources.of(row.file).unwrap_or_else(|| panic!("{}", row.file));
            assert!(paths.contains(row.file), "{}", row.id);
            for path in &paths {
                assert!(sources.root().join(path).exists(), "{}: {path}", row.id);
            }
            assert!(!paths.iter().any(|path| path.contains("/reproduce/")), "{}", row.id);
        }
    }

    #[test]
    fn a_row_knows_the_crates_that_its_code_depends_on_and_no_others() {
        let control = ["link", "edge", "controller", "switch"];
        let simulated = ["sim", "fabric", "plane", "node", "wire", "tcp"];
        let simulated = [&simulated[..], &control].concat();
        check("payload/table2", &["model", "cache", "node", "wire"], &["linux", "sim", "fabric"]);
        check("payload/live", &["linux", "agents", "agent-port", "cache", "external"], &["model"]);
        check("axon/fig4.1", &simulated, &["linux", "model", "demo", "axon", "cli", "papers"]);
        check("axon/table1", &[&simulated[..], &["demo", "linux"]].concat(), &["model"]);
        check("hagen/conformance", &["conformance", "sim", "linux"], &["demo", "model"]);
        for row in ALL.iter().filter(|row| row.id.starts_with("serverswitch/")) {
            check(row.id, &["pipeline", "programs", "agents", "cache"], &["model", "demo"]);
        }
    }

    #[test]
    fn a_row_knows_the_modules_that_it_uses_and_the_files_that_these_include() {
        let paths = of("axon/fig4.10");
        for file in ["axon/fig4_10.rs", "axon/fig4_5.rs", "axon/fig4_5/live.rs", "axon/latency.rs"]
        {
            assert!(paths.contains(&format!("{PAPERS}/{file}")), "{file}: {paths:?}");
        }
        assert!(paths.contains(&format!("{PAPERS}/axon/line.yaml")), "{paths:?}");
        assert!(!paths.contains(&format!("{PAPERS}/axon/fig4_1.rs")), "{paths:?}");
        assert!(of("axon/fig6a").contains(&format!("{PAPERS}/axon/scale/pattern.rs")));
        assert!(of("payload/live").contains("ebpf/built/tc.o"), "as axon-linux includes it");
        assert_eq!(sources().of("experiments/papers/src/none.rs"), None);
    }

    #[test]
    fn a_use_tree_is_read_with_its_braces() {
        let mut paths = Vec::new();
        tree(&mut "a::{self, b::{C, d::*}, E as F}, more", vec!["x".into()], &mut paths);
        let paths: Vec<String> = paths.iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, ["x::a::self", "x::a::b::C", "x::a::b::d::", "x::a::E"]);
    }

    #[test]
    fn tests_and_comments_lead_nowhere() {
        let text = "use a;\n/// axon_one\n    // axon_two\n#[doc = include_str!(\"x\")]\nmod b;\n\n\
                    #[cfg(test)]\nmod tests { use axon_sim::S; }\n";
        assert_eq!(code(text), "use a;\nmod b;\n");
        let lines = "const A: &str = include_str!(\"a.yaml\");\nfn include_all() {}\n\
                     aya::include_bytes_aligned!(\"../../../ebpf/b.o\");";
        let in_papers = included("experiments/papers/src/axon/x.rs", lines);
        assert_eq!(in_papers, ["experiments/papers/src/axon/a.yaml", "experiments/ebpf/b.o"]);
        assert_eq!(included("crates/linux/src/x.rs", lines), ["ebpf/b.o"]);
    }
}
