//! No import cycles between the files of a crate.

use super::modules::{Crate, Import};
use super::{assert_none, is_crate_root, sources};
use std::collections::{BTreeMap, BTreeSet};

/// A file may not import, directly or indirectly, a file that imports it. This holds for a parent
/// and its child modules as well: shared items are in a child of their own, which the parent
/// re-exports with `pub use`.
///
/// An `impl` block that another file adds to a type is recognised by its imports; a call of its
/// methods is not.
#[test]
fn files_of_a_crate_do_not_import_each_other_in_a_cycle() {
    let sources: BTreeMap<String, String> = sources().into_iter().collect();
    let is_root = |name: &&String| name.contains("/src/") && is_crate_root(name);
    let mut problems = Vec::new();
    for root in sources.keys().filter(is_root) {
        let imports = Crate::read(root, &sources).imports();
        for cycle in cycles(&imports) {
            problems.push(format!("{root}: {} files import each other:", cycle.len()));
            problems.extend(shown(&imports, &cycle));
        }
    }
    assert_none(&problems);
}

/// Returns the sets of files that import each other.
fn cycles(imports: &[Import]) -> Vec<BTreeSet<&str>> {
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for import in imports {
        needs.entry(&import.from).or_default().insert(&import.to);
    }
    let all_needs = |file: &str| {
        let mut reached = BTreeSet::new();
        let mut ahead: Vec<&str> = needs[file].iter().copied().collect();
        while let Some(file) = ahead.pop() {
            if reached.insert(file) {
                ahead.extend(needs.get(file).into_iter().flatten());
            }
        }
        reached
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        needs.keys().map(|&file| (file, all_needs(file))).collect();
    let need_each_other = |one: &str, other: &str| {
        let leads = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
        leads(one, other) && leads(other, one)
    };
    let mut found = BTreeSet::new();
    for &file in reached.keys().filter(|file| need_each_other(file, file)) {
        let others = reached.keys().copied().filter(|other| need_each_other(file, other));
        found.insert(others.collect::<BTreeSet<&str>>());
    }
    found.into_iter().collect()
}

/// Describes the imports that close a cycle, as lines of text.
fn shown(imports: &[Import], cycle: &BTreeSet<&str>) -> Vec<String> {
    let inside = |file: &String| cycle.contains(file.as_str());
    let closing = imports.iter().filter(|import| inside(&import.from) && inside(&import.to));
    let line = |import: &Import| {
        format!("    {}:{}: {} is in {}", import.from, import.line, import.path, import.to)
    };
    closing.map(line).collect()
}

/// Returns the cycles of a crate with these files in `src`, and the imports of each as text.
fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let in_src = |&(name, text): &(&str, &str)| (format!("src/{name}"), text.to_owned());
    let sources: BTreeMap<String, String> = files.iter().map(in_src).collect();
    let imports = Crate::read("src/lib.rs", &sources).imports();
    cycles(&imports).iter().map(|cycle| shown(&imports, cycle)).collect()
}

#[test]
fn a_cycle_is_found_with_the_imports_that_close_it() {
    let cycle = found(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "pub struct A;\nuse crate::b::{B as Other, C};"),
        ("b.rs", "pub struct B; pub struct C;\nfn f() { super::c::f::<u8>() }"),
        ("c.rs", "use self::inner::*; mod inner { use super::super::a::A; } pub fn f<T>() {}"),
        ("d.rs", "use crate::a::A;"),
    ]);
    let shown = [
        "    src/a.rs:2: crate::b::B is in src/b.rs",
        "    src/a.rs:2: crate::b::C is in src/b.rs",
        "    src/b.rs:2: super::c::f is in src/c.rs",
        "    src/c.rs:1: super::super::a::A is in src/a.rs",
    ];
    assert_eq!(cycle, [shown]);
}

#[test]
fn a_name_leads_to_its_file_by_whatever_way_it_is_exported() {
    let files = |import: &str| {
        found(&[
            ("lib.rs", "mod a; mod room; pub use room::deep::{self, Deep}; pub use room::*;"),
            ("room/mod.rs", "pub mod deep; pub use deep::Deep as Renamed;"),
            ("room/deep.rs", "pub struct Deep; pub fn go() {} use crate::a::A;"),
            ("a.rs", &format!("pub struct A;\n{import}")),
        ])
    };
    for import in [
        "use crate::Deep;",
        "use crate::Renamed;",
        "use crate::room::Renamed;",
        "use crate::deep; fn f() { deep::go() }",
        "fn f() { crate::room::deep::go() }",
        "macro_rules! m { () => { $crate::deep::go() } }",
        "#[derive(Clone)] struct S(Vec<crate::Deep>);",
    ] {
        assert_eq!(files(import).len(), 1, "{import}");
    }
    for import in [
        "",
        "use crate::room;",
        "use other::Deep;",
        "/// See [`crate::Deep`].\nstruct S;",
        "#[cfg(test)] mod tests { use crate::Deep; }",
        "#[cfg(test)] fn f() { crate::deep::go() } fn g() {}",
        "const S: &str = \"crate::Deep\";",
    ] {
        assert!(files(import).is_empty(), "{import}");
    }
}

#[test]
fn a_parent_that_only_shows_its_children_is_in_no_cycle_with_them() {
    let files = |parent: &str| {
        found(&[
            ("lib.rs", "mod room;"),
            ("room.rs", &format!("mod child;\npub struct P;\n{parent}")),
            ("room/child.rs", "pub struct Child(super::P);"),
        ])
    };
    assert!(files("pub use child::Child;").is_empty());
    assert_eq!(files("pub use child::Child; fn f(_: Child) {}").len(), 1);
    assert_eq!(files("use child::Child;").len(), 1);
    assert_eq!(files("fn f(_: child::Child) {}").len(), 1);
}
