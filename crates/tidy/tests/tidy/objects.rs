//! No god objects: a type with behaviour is small, and its state is its own.

use super::{assert_none, sources, without_tests};
use std::collections::BTreeMap;
use syn::{Fields, ImplItem, Item, Type, Visibility};

/// Methods of a type over all its `impl` blocks, without those of traits.
const METHODS_MAX: usize = 40;
/// Least methods of a type with behaviour, to which the limits of fields apply; others are data.
const BEHAVIOUR: usize = 10;
/// Fields of a type with behaviour.
const FIELDS_MAX: usize = 16;

/// Names of folders and files that hold tests and their devices.
const TESTS: [&str; 4] = ["test", "tests", "testing", "test_device"];

/// Size of a type. Types of one name in a crate count as one.
#[derive(Clone, Copy, Default)]
struct Size {
    methods: usize,
    fields: usize,
    /// Fields that other files of the crate may write (`pub(super)`, `pub(crate)`).
    shared: usize,
}

impl Size {
    const fn of(methods: usize, fields: usize, shared: usize) -> Size {
        Size { methods, fields, shared }
    }

    /// True if no count is above that of `limit`.
    fn fits(self, limit: Size) -> bool {
        self.methods <= limit.methods && self.fields <= limit.fields && self.shared <= limit.shared
    }
}

/// Adds the types and `impl` blocks of some items to the sizes by name of the type.
fn count(items: &[Item], sizes: &mut BTreeMap<String, Size>) {
    for item in items {
        match item {
            Item::Struct(one) => {
                let size = sizes.entry(one.ident.to_string()).or_default();
                if let Fields::Named(fields) = &one.fields {
                    let is_shared =
                        |field: &&syn::Field| matches!(field.vis, Visibility::Restricted(_));
                    size.fields += fields.named.len();
                    size.shared += fields.named.iter().filter(is_shared).count();
                }
            }
            Item::Impl(block) if block.trait_.is_none() => {
                let Type::Path(path) = &*block.self_ty else { continue };
                let Some(last) = path.path.segments.last() else { continue };
                let methods = block.items.iter();
                let methods = methods.filter(|item| matches!(item, ImplItem::Fn(_))).count();
                sizes.entry(last.ident.to_string()).or_default().methods += methods;
            }
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    count(items, sizes);
                }
            }
            _ => {}
        }
    }
}

/// Returns what is wrong with a type, if anything is.
fn problem(size: Size) -> Option<String> {
    let Size { methods, fields, shared } = size;
    let has_behaviour = methods >= BEHAVIOUR;
    let limit = match has_behaviour {
        true => Size::of(METHODS_MAX, FIELDS_MAX, 0),
        false => Size::of(METHODS_MAX, usize::MAX, usize::MAX),
    };
    let text = format!("{methods} methods, {fields} fields, {shared} of them shared");
    (!size.fits(limit)).then_some(text)
}

#[test]
fn no_type_has_too_many_methods_fields_or_writers() {
    let mut crates: BTreeMap<String, BTreeMap<String, Size>> = BTreeMap::new();
    for (name, text) in sources() {
        let Some((of, inside)) = name.split_once("/src/") else { continue };
        let is_test = inside.split(['/', '.']).any(|part| TESTS.contains(&part));
        if is_test || !(of.starts_with("crates/") || of.starts_with("experiments/")) {
            continue;
        }
        let file = syn::parse_file(without_tests(&text)).unwrap_or_else(|e| panic!("{name}: {e}"));
        count(&file.items, crates.entry(of.to_owned()).or_default());
    }
    let mut problems = Vec::new();
    for (of, sizes) in &crates {
        for (name, size) in sizes {
            let what = problem(*size);
            problems.extend(what.map(|what| format!("{of}: {name}: {what}")));
        }
    }
    assert_none(&problems);
}

#[test]
fn methods_are_counted_over_all_blocks_and_only_data_may_be_wide() {
    let text = "struct A { pub(super) a: u8, b: u8 } impl A { fn a() {} fn b() {} }\n\
                impl<T> B<T> {} mod m { impl A { fn c() {} } impl Clone for A { fn clone() {} } }";
    let mut sizes = BTreeMap::new();
    count(&syn::parse_file(text).unwrap().items, &mut sizes);
    let Size { methods, fields, shared } = sizes["A"];
    assert_eq!((methods, fields, shared), (3, 2, 1));
    assert!(problem(Size::of(9, 99, 9)).is_none() && problem(Size::of(10, 16, 0)).is_none());
    for size in [Size::of(41, 0, 0), Size::of(10, 17, 0), Size::of(10, 3, 1)] {
        assert!(problem(size).is_some());
    }
}
