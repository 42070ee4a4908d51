//! Pages: their links and headings exist, and only generated pages are long.

use super::{assert_none, files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

const WORDS_MAX: usize = 3_000;
/// Pages that commands generate.
const GENERATED: &[&str] = &["docs/outputs.md", "docs/papers.md"];

/// Text of each page by path.
fn pages() -> BTreeMap<String, String> {
    files().into_iter().filter(|(name, _)| name.ends_with(".md")).collect()
}

#[test]
fn pages_have_at_most_3000_words() {
    let pages = pages().into_iter().filter(|(name, _)| !GENERATED.contains(&name.as_str()));
    let long: Vec<String> = pages
        .map(|(name, text)| (name, text.split_whitespace().count()))
        .filter(|&(_, words)| words > WORDS_MAX)
        .map(|(name, words)| format!("{name}: {words} words"))
        .collect();
    assert_none(&long);
}

#[test]
fn links_between_pages_lead_to_files_and_headings() {
    let pages = pages();
    let broken: Vec<String> = pages.keys().flat_map(|name| broken(name, &pages)).collect();
    assert_none(&broken);
}

/// Paths in backticks, on pages and in comments, from the root: `crates/a/src/{b,c}.rs`.
#[test]
fn paths_in_backticks_lead_to_files_and_folders() {
    let mut gone = Vec::new();
    for (name, text) in files() {
        let kind = name.rsplit('.').next().unwrap_or_default();
        if !["md", "rs", "py", "toml"].contains(&kind) || name.starts_with("crates/tidy/") {
            continue;
        }
        let paths = text.lines().flat_map(quoted).flat_map(expanded);
        let missing = paths.filter(|path| !root().join(path).exists());
        gone.extend(missing.map(|path| format!("{name}: there is no {path}")));
    }
    assert_none(&gone);
}

/// Returns the paths in backticks of a line, of folders that hold sources.
fn quoted(line: &str) -> Vec<&str> {
    let is_path = |text: &&str| {
        let known =
            ["crates/", "experiments/", "docs/", "scenarios/", "tools/", "vectors/", "ebpf/"];
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-{,}".contains(c);
        known.iter().any(|folder| text.starts_with(folder)) && text.chars().all(plain)
    };
    line.split('`').skip(1).step_by(2).filter(is_path).collect()
}

/// Returns the paths of `a/{b,c}.rs`: `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(head, rest)| {
        let (list, tail) = rest.split_once('}')?;
        Some(list.split(',').map(|one| format!("{head}{one}{tail}")).collect())
    });
    parts.unwrap_or_else(|| vec![path.to_owned()])
}

#[test]
fn paths_are_found_with_their_braces() {
    let line = "see `crates/a/src/{b,c}.rs`, `x/y.rs`, `crates/*/src` and `tools/test -p x`";
    let found: Vec<String> = quoted(line).into_iter().flat_map(expanded).collect();
    assert_eq!(found, ["crates/a/src/b.rs", "crates/a/src/c.rs"]);
}

#[test]
fn every_page_for_readers_is_in_the_index() {
    let pages = pages();
    let index = links(&pages["docs/README.md"]);
    let is_page = |name: &&String| {
        let file = name.strip_prefix("docs/");
        file.is_some_and(|file| !file.contains('/') && file != "README.md")
    };
    let is_missing = |name: &&String| !index.iter().any(|link| format!("docs/{link}") == **name);
    let missing: Vec<String> = pages.keys().filter(is_page).filter(is_missing).cloned().collect();
    assert_none(&missing);
}

/// Returns the broken links of a page.
fn broken(name: &str, pages: &BTreeMap<String, String>) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let is_broken = |link: &&str| {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() { name.into() } else { normal(&folder.join(file)) };
        let page = pages.get(&target);
        let has = |text: &String| heading.is_empty() || headings(text).contains(heading);
        !page.map_or(heading.is_empty() && root.join(&target).exists(), has)
    };
    let all = links(&pages[name]);
    all.into_iter().filter(is_broken).map(|link| format!("{name}: {link}")).collect()
}

/// Returns the targets of a page's links, except those to other sites.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.contains(' ')).collect()
}

/// Returns the anchors of a page's headings, as Markdown renderers create them.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    let kept = |of: char| of.is_alphanumeric() || "-_ ".contains(of);
    let anchor = |line: &str| line.trim_start_matches('#').trim().to_lowercase();
    lines
        .map(|line| anchor(line).chars().filter(|&of| kept(of)).collect::<String>())
        .map(|anchor| anchor.replace(' ', "-"))
        .collect()
}

/// Returns the path without `.` and `..`.
fn normal(path: &Path) -> String {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out.to_string_lossy().into_owned()
}

#[test]
fn readme_says_how_many_rows_of_the_papers_hold() {
    let pages = pages();
    let papers = &pages["docs/papers.md"];
    let line = papers.lines().find(|line| line.contains(" tables and figures: ")).unwrap();
    let numbers: Vec<u32> = line
        .split(|of: char| !of.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    let [all, held, built, missed, none] = numbers[..] else { panic!("{line}") };
    let said = format!(
        "{all} tables and figures: {held} hold, {built} follow by construction, {} miss",
        missed + none
    );
    assert!(pages["README.md"].contains(&said), "README.md does not say: {said}");
}

#[test]
fn a_broken_link_is_found() {
    let page = "# A b\n[a](b.md#c-d) [b](#a-b) [c](#none) [d](x/../b.md) [e](gone.md)\n";
    let pages = [("docs/a.md", page), ("docs/b.md", "## `C` d\n")];
    let pages = pages.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    assert_eq!(broken("docs/a.md", &pages), ["docs/a.md: #none", "docs/a.md: gone.md"]);
}
