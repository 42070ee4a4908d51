//! House rules, as tests.

mod changed;
mod columns;
mod cycles;
mod modules;
mod objects;
mod pages;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE_LINES_MAX: usize = 500;
/// Maximum number of lines of a file of tests only.
const TEST_FILE_LINES_MAX: usize = 700;
const FUNCTION_LINES_MAX: usize = 70;
/// Crates that may contain `unsafe`.
const UNSAFE_CRATES: &[&str] =
    &["crates/agent-port/", "crates/huge-pages/", "crates/linux/", "crates/rtl/src/model.rs"];
/// Allowed dependencies of each crate on crates of ours; they form layers.
const ARROWS: &[(&str, &[&str])] = &[
    ("axon-wire", &[]),
    ("axon-node", &["axon-wire"]),
    ("axon-capture", &["axon-node", "axon-wire"]),
    ("axon-cache", &["axon-node", "axon-wire"]),
    ("axon-plane", &["axon-node", "axon-wire"]),
    ("axon-pipeline", &["axon-node", "axon-plane", "axon-wire"]),
    ("axon-rtl", &["axon-node", "axon-plane", "axon-wire"]),
    ("axon-programs", &PROGRAMS),
    ("axon-external", &EXTERNAL),
    ("axon-py", &PY),
    ("axon-agents", &["axon-cache", "axon-node", "axon-pipeline", "axon-plane", "axon-wire"]),
    ("axon-agent-port", &["axon-agents", "axon-cache", "axon-wire"]),
    ("axon-huge-pages", &[]),
    ("axon-log", &[]),
    ("axon-plot", &[]),
    ("axon-cli", &["axon-log"]),
    ("axon-tidy", &[]),
    ("axon-prove", &["axon-node", "axon-wire"]),
    ("axon-dcbx", &["axon-node", "axon-plane", "axon-wire"]),
    ("axon-baselines", &["axon-node", "axon-plane", "axon-wire"]),
    ("axon-tcp", &["axon-wire"]),
    ("axon-link", &["axon-node", "axon-wire"]),
    ("axon-edge", &["axon-link", "axon-node", "axon-wire"]),
    ("axon-controller", &["axon-link", "axon-node", "axon-wire"]),
    ("axon-switch", &SWITCH),
    ("axon-check", &["axon-controller", "axon-edge", "axon-link", "axon-node", "axon-wire"]),
    ("axon-fabric", &FABRIC),
    ("axon-simhost", &SIMHOST),
    ("axon-sim", &SIM),
    ("axon-linux", &LINUX),
    ("axon-lab", &LAB),
    ("axon-demo", &DEMO),
    ("axon-model", &MODEL),
    ("axon-conformance", &CONFORMANCE),
    ("axon-papers", &PAPERS),
    ("axon-fuzz", &FUZZ),
    ("axon-bench", &BENCH),
    ("axon", &AXON),
];
const PROGRAMS: [&str; 5] =
    ["axon-baselines", "axon-node", "axon-pipeline", "axon-plane", "axon-wire"];
const EXTERNAL: [&str; 4] = ["axon-node", "axon-pipeline", "axon-programs", "axon-wire"];
const PY: [&str; 8] =
    with(EXTERNAL, ["axon-agent-port", "axon-agents", "axon-cache", "axon-external"]);
const SWITCH: [&str; 7] = [
    "axon-controller",
    "axon-dcbx",
    "axon-edge",
    "axon-link",
    "axon-node",
    "axon-plane",
    "axon-wire",
];
const FABRIC: [&str; 14] = with(
    SWITCH,
    [
        "axon-agents",
        "axon-cache",
        "axon-capture",
        "axon-pipeline",
        "axon-programs",
        "axon-prove",
        "axon-switch",
    ],
);
const SIMHOST: [&str; 8] = [
    "axon-capture",
    "axon-dcbx",
    "axon-link",
    "axon-node",
    "axon-plane",
    "axon-prove",
    "axon-tcp",
    "axon-wire",
];
const SIM: [&str; 18] = with(FABRIC, ["axon-baselines", "axon-fabric", "axon-rtl", "axon-simhost"]);
const LINUX: [&str; 19] =
    with(FABRIC, ["axon-agent-port", "axon-external", "axon-fabric", "axon-log", "axon-rtl"]);
const LAB: [&str; 20] = with(LINUX, ["axon-linux"]);
const DEMO: [&str; 22] = with(LAB, ["axon-cli", "axon-lab"]);
const MODEL: [&str; 4] = ["axon-cache", "axon-cli", "axon-fabric", "axon-wire"];
const CONFORMANCE: [&str; 20] = with(SIM, ["axon-linux", "axon-sim"]);
const PAPERS: [&str; 26] = with(
    CONFORMANCE,
    ["axon-cli", "axon-conformance", "axon-demo", "axon-lab", "axon-model", "axon-plot"],
);
const FUZZ: [&str; 8] = [
    "axon-capture",
    "axon-fabric",
    "axon-link",
    "axon-node",
    "axon-pipeline",
    "axon-plane",
    "axon-switch",
    "axon-wire",
];
const BENCH: [&str; 24] = with(DEMO, ["axon-demo", "axon-plot"]);
/// Crates of the product. Experiments are separate programs on which none of them depends.
const AXON: [&str; 26] = with(
    CONFORMANCE,
    ["axon-cli", "axon-conformance", "axon-external", "axon-huge-pages", "axon-lab", "axon-plot"],
);
/// Packages that a plain `cargo build` omits: experiments, tools and the Python module.
const NOT_BY_DEFAULT: [&str; 8] = [
    "axon-bench",
    "axon-check",
    "axon-demo",
    "axon-fuzz",
    "axon-model",
    "axon-papers",
    "axon-py",
    "axon-tidy",
];
/// Additional dependencies of a crate's tests, which no crate depends on.
const ARROWS_OF_TESTS: &[(&str, &[&str])] = &[
    ("axon-controller", &["axon-plane", "axon-prove"]),
    ("axon-programs", &["axon-fabric"]),
    ("axon-sim", &["axon-huge-pages"]),
];
/// Accepted licences. A dependency needs one of them; terms joined by AND must all be listed.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Returns these names and some more.
const fn with<const A: usize, const B: usize, const C: usize>(
    some: [&'static str; A],
    more: [&'static str; B],
) -> [&'static str; C] {
    assert!(A + B == C);
    let (mut all, mut index) = ([""; C], 0);
    while index < C {
        all[index] = if index < A { some[index] } else { more[index - A] };
        index += 1;
    }
    all
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the committed text files, with their text.
fn files() -> Vec<(String, String)> {
    let output = Command::new("git").arg("-C").arg(root()).arg("ls-files").output().unwrap();
    assert!(output.status.success(), "the tidy test needs git and a checkout");
    let names = String::from_utf8(output.stdout).unwrap();
    // Inputs of fuzz targets may have any content.
    let is_ours = |name: &&str| !name.starts_with("fuzz/seeds/");
    let read =
        |name: &str| Some((name.to_string(), std::fs::read_to_string(root().join(name)).ok()?));
    names.lines().filter(is_ours).filter_map(read).collect()
}

fn sources() -> Vec<(String, String)> {
    files().into_iter().filter(|(name, _)| name.ends_with(".rs")).collect()
}

/// Returns the text before the tests at the bottom.
fn without_tests(text: &str) -> &str {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    &text[..end]
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn files_are_short() {
    let mut problems = Vec::new();
    for (name, text) in sources() {
        let limit = if name.contains("/tests/") { TEST_FILE_LINES_MAX } else { FILE_LINES_MAX };
        let lines = without_tests(&text).lines().count();
        if lines > limit {
            problems.push(format!("{name}: {lines} lines without tests"));
        }
    }
    assert_none(&problems);
}

/// A function begins at a line with `fn ` and ends at the brace of the same indentation, where
/// rustfmt places it.
#[test]
fn functions_are_short() {
    let mut problems = Vec::new();
    for (name, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let trimmed = line.trim_start();
            let head = trimmed.split("fn ").next().unwrap_or("");
            let modifiers = head.split_whitespace().all(|word| {
                word.starts_with("pub") || ["const", "unsafe", "async"].contains(&word)
            });
            if !trimmed.contains("fn ") || !modifiers || trimmed.ends_with(['}', ';']) {
                continue;
            }
            let body = lines[start..].iter().find(|line| line.ends_with(['{', ';']));
            if body.is_none_or(|line| line.ends_with(';')) {
                continue;
            }
            let end = format!("{}}}", &line[..line.len() - trimmed.len()]);
            let length = lines[start..].iter().position(|line| *line == end).unwrap_or(0) + 1;
            if length > FUNCTION_LINES_MAX {
                problems.push(format!("{name}:{}: {length} lines", start + 1));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn unsafe_code_has_one_home() {
    let word = concat!("un", "safe ");
    let mut problems = Vec::new();
    for (name, text) in sources() {
        let home = UNSAFE_CRATES.iter().any(|home| name.starts_with(home));
        let code = |line: &&str| !line.trim_start().starts_with("//");
        if !home && text.lines().filter(code).any(|line| line.contains(word)) {
            problems.push(format!("{name}: unsafe code outside its home"));
        }
    }
    // Strings and comments of this file are not code.
    problems.retain(|problem| !problem.starts_with("crates/tidy/tests/tidy/"));
    assert_none(&problems);
}

/// Returns whether Cargo compiles a file by itself: the root of a crate.
fn is_crate_root(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        ["crates" | "experiments", _, "src", file] => ["lib.rs", "main.rs"].contains(&file),
        ["crates" | "experiments", _, "src", "bin", _] => true,
        ["crates" | "experiments", _, "tests" | "benches" | "examples", _] => true,
        ["crates" | "experiments", _, "tests", _, "main.rs"] => true,
        ["crates", _, "build.rs"] | ["fuzz", "fuzz_targets" | "tests", _] => true,
        ["fuzz", "src", file] => file == "lib.rs",
        _ => false,
    }
}

/// Returns the files that the `mod` lines of a file may refer to: `x.rs` and `x/mod.rs` in the
/// folder of its modules, or the path in `#[path]` above the line.
fn modules(name: &str, text: &str) -> Vec<PathBuf> {
    let path = Path::new(name);
    let folder = path.parent().unwrap();
    let own = is_crate_root(name) || path.ends_with("mod.rs");
    let below = if own { folder.to_path_buf() } else { path.with_extension("") };
    let mut found = Vec::new();
    let mut said: Option<&str> = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            said = rest.split('"').next();
            continue;
        }
        let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
        let is_module = line.ends_with(';')
            && matches!(words[..], ["mod", _] | [_, "mod", _])
            && (words.len() == 2 || words[0].starts_with("pub"));
        if is_module {
            let module = words[words.len() - 1];
            match said {
                Some(said) => found.push(folder.join(said)),
                None => found.extend([
                    below.join(format!("{module}.rs")),
                    below.join(module).join("mod.rs"),
                ]),
            }
        }
        if !line.starts_with("#[") {
            said = None;
        }
    }
    found
}

/// Returns the path without `.` and `..`.
fn plain(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.to_str().unwrap().split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Every file is reachable by `mod` from the root of a crate.
#[test]
fn no_file_is_dead() {
    let sources: BTreeMap<String, String> = sources().into_iter().collect();
    let roots = sources.keys().filter(|name| is_crate_root(name));
    let mut ahead: Vec<String> = roots.cloned().collect();
    let mut reached = BTreeSet::new();
    while let Some(name) = ahead.pop() {
        let Some(text) = sources.get(&name) else {
            continue;
        };
        if reached.insert(name.clone()) {
            ahead.extend(modules(&name, text).iter().map(|path| plain(path)));
        }
    }
    let dead = sources.keys().filter(|name| !reached.contains(*name));
    let problems: Vec<String> = dead.map(|name| format!("{name}: no `mod` leads here")).collect();
    assert_none(&problems);
}

#[test]
fn text_is_clean_and_knows_no_machine() {
    // Split in halves, so that this file does not match itself.
    let homes = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];
    let mut problems = Vec::new();
    for (name, text) in files() {
        // Tests may contain output of other programs.
        let shipped = if name.ends_with(".rs") { without_tests(&text) } else { &text };
        if shipped.contains(concat!("/t", "mp")) {
            problems.push(format!("{name}: ask std::env::temp_dir, or mktemp, for the directory"));
        }
        let may_tab = name.ends_with("Makefile") || name == "LICENSE" || name.ends_with(".lua");
        for (index, line) in text.lines().enumerate() {
            let at = format!("{name}:{}", index + 1);
            if line.ends_with([' ', '\t']) {
                problems.push(format!("{at}: ends in a blank"));
            }
            if line.contains('\t') && !may_tab {
                problems.push(format!("{at}: a tab"));
            }
            if homes.iter().any(|home| line.contains(home)) {
                problems.push(format!("{at}: a path of one machine"));
            }
        }
    }
    assert_none(&problems);
}

/// A test that prints this itself would pass in CI without having run.
#[test]
fn what_a_test_lacks_is_said_in_one_place() {
    let home = "crates/wire/tests/needs/mod.rs";
    // Split in halves, so that this file does not match itself.
    let words = [concat!("\"SK", "IP"), concat!("\"skip", "ped:")];
    let says = |(name, text): &(String, String)| {
        let said = |line: &str| words.iter().any(|word| line.contains(word));
        name.contains("/tests/") && name != home && text.lines().any(said)
    };
    let all = sources();
    let problems = all.iter().filter(|source| says(source));
    let problems: Vec<String> =
        problems.map(|(name, _)| format!("{name}: ask {home} for what is needed")).collect();
    assert_none(&problems);
    assert!(all.iter().any(|(name, _)| name == home));
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut problems = Vec::new();
    for (name, text) in files().into_iter().filter(|(name, _)| name.ends_with(".md")) {
        for part in text.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or("");
            let target = target.split('#').next().unwrap_or("");
            let folder = root().join(&name).parent().unwrap().to_path_buf();
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                problems.push(format!("{name}: nothing at {target}"));
            }
        }
    }
    assert_none(&problems);
}

fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--format-version=1"])
        // Dependencies of other systems need not be on this disk.
        .arg("--filter-platform=x86_64-unknown-linux-gnu")
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn arrows_between_crates_go_down() {
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            let ours = name == "axon" || name.starts_with("axon-");
            assert!(!ours, "{name} is not in the table of arrows");
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = dependency["name"].as_str().unwrap();
            let ours = to == "axon" || to.starts_with("axon-");
            let in_tests = dependency["kind"] == "dev"
                && ARROWS_OF_TESTS.iter().any(|(from, more)| *from == name && more.contains(&to));
            let down = allowed.contains(&to) || in_tests;
            assert!(!ours || down, "{name} must not depend on {to}");
        }
    }
}

#[test]
fn a_plain_build_has_every_crate_but_experiments_and_tools() {
    let metadata = metadata();
    let ids = |key: &str| -> BTreeSet<String> {
        let ids = metadata[key].as_array().unwrap().iter();
        ids.map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    let (all, default) = (ids("workspace_members"), ids("workspace_default_members"));
    let name = |package: &serde_json::Value| package["name"].as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let left_out = packages.filter(|package| {
        let id = package["id"].as_str().unwrap();
        all.contains(id) && !default.contains(id)
    });
    let left_out: BTreeSet<String> = left_out.map(name).collect();
    assert_eq!(left_out, NOT_BY_DEFAULT.map(str::to_owned).into());
}

/// True if a documentation comment has an example that rustdoc would compile.
fn has_doc_example(text: &str) -> bool {
    let mut inside = false;
    let mut opens = |rest: &str| {
        inside = !inside;
        inside && ["", "rust", "no_run", "should_panic", "compile_fail"].contains(&rest)
    };
    text.lines().map(str::trim_start).any(|line| {
        let comment = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
        comment.and_then(|text| text.trim().strip_prefix("```")).is_some_and(&mut opens)
    })
}

/// rustdoc takes seconds to look for examples in a crate: it runs only for crates that have some.
#[test]
fn a_library_runs_its_doc_examples_or_has_none() {
    let (metadata, sources) = (metadata(), sources());
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let is_library = |kind: &serde_json::Value| kind == "lib";
        let runs = package["targets"].as_array().unwrap().iter().find_map(|target| {
            let is_one = target["kind"].as_array().unwrap().iter().any(is_library);
            is_one.then(|| target["doctest"].as_bool().unwrap())
        });
        let ours = ARROWS.iter().any(|(from, _)| *from == name);
        let (Some(runs), true) = (runs, ours) else { continue };
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let folder = manifest.parent().unwrap().strip_prefix(root()).unwrap().join("src");
        let in_it = |(path, text): &(String, String)| {
            Path::new(path).starts_with(&folder) && has_doc_example(text)
        };
        assert_eq!(sources.iter().any(in_it), runs, "{name}: `doctest` of its [lib]");
    }
}

/// Returns the packages that are built here, as `name v1.2.3`. The metadata also lists features
/// that a package has only on other systems.
fn built() -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--workspace", "--prefix=none", "--format={p}"])
        .arg("--target=x86_64-unknown-linux-gnu")
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    String::from_utf8(output.stdout).unwrap().lines().map(name).collect()
}

#[test]
fn every_dependency_has_a_licence_that_we_may_use() {
    let (metadata, built) = (metadata(), built());
    assert!(built.iter().any(|package| package.starts_with("serde v")), "{built:?}");
    let mut problems = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap());
        if !built.contains(&format!("{name} v{version}")) {
            continue;
        }
        let licence = package["license"].as_str().unwrap_or("none");
        let plain = licence.replace(['(', ')'], "").replace(" / ", " OR ").replace('/', " OR ");
        let allowed = |term: &str| LICENCES.contains(&term.trim());
        let good = plain.split(" AND ").all(|part| part.split(" OR ").any(allowed));
        if !good {
            problems.insert(format!("{}: {licence}", package["name"]));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
