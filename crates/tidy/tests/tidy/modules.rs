//! The modules of a crate and the names they use of each other, read from the tokens of its files.
//!
//! A file is split into tokens, so comments and strings are not code. Attributes, `mod`, `use` and
//! paths are recognised by their tokens; code under `#[cfg(test)]` and `#[test]` is excluded. A
//! path leads to the file that defines its last module or item. `use` declarations are followed, so
//! a re-exported name leads to its definition.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;

/// Keywords before the name of an item.
const ITEMS: [&str; 9] =
    ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "macro_rules"];
/// Maximum length of a chain of `use` declarations for one name.
const DEPTH_MAX: usize = 16;

/// A name that a `use` declaration brings into a module.
struct Use {
    /// `None` for `*`.
    name: Option<String>,
    path: Vec<String>,
    /// True if the import is `pub`, with any visibility.
    exported: bool,
    line: usize,
}

/// A module, in a file of its own or inside one.
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths of two or more names in its code, with their lines.
    paths: Vec<(Vec<String>, usize)>,
    /// All names in its code but those in `use` declarations.
    words: BTreeSet<String>,
}

/// Target of a path.
#[derive(Clone, Copy)]
enum Target {
    /// A module itself.
    Module(usize),
    /// An item of this module.
    Item(usize),
}

/// An import of one file by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub from: String,
    pub to: String,
    /// Line in `from`, counted from 1.
    pub line: usize,
    /// The path as written there.
    pub path: String,
}

/// The modules of one crate.
pub struct Crate<'a> {
    sources: &'a BTreeMap<String, String>,
    modules: Vec<Module>,
}

impl<'a> Crate<'a> {
    /// Reads a crate, starting at its root.
    pub fn read(root: &str, sources: &'a BTreeMap<String, String>) -> Crate<'a> {
        let mut all = Crate { sources, modules: Vec::new() };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        all.read_file(root, folder, None);
        all
    }

    fn add(&mut self, file: &str, parent: Option<usize>) -> usize {
        self.modules.push(Module {
            file: file.to_owned(),
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            uses: Vec::new(),
            paths: Vec::new(),
            words: BTreeSet::new(),
        });
        self.modules.len() - 1
    }

    /// Reads a file whose modules are in `folder`.
    fn read_file(&mut self, file: &str, folder: &str, parent: Option<usize>) -> usize {
        let module = self.add(file, parent);
        let tokens = TokenStream::from_str(&self.sources[file]);
        let tokens = tokens.unwrap_or_else(|error| panic!("{file}: {error}"));
        self.read_tokens(module, folder, tokens);
        module
    }

    fn read_tokens(&mut self, module: usize, folder: &str, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut path_attribute = None;
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Punct(hash) if hash.as_char() == '#' => {
                    let (attribute, next) = attribute(&tokens, at);
                    at = if is_for_tests(&attribute) { after_item(&tokens, next) } else { next };
                    let said = attribute.strip_prefix("path = ");
                    path_attribute = said.map(|said| said.trim_matches('"').to_owned());
                }
                TokenTree::Group(group) => {
                    self.read_tokens(module, folder, group.stream());
                    at += 1;
                }
                TokenTree::Ident(word) if word == "mod" => {
                    at = self.read_module(module, folder, &tokens, at, path_attribute.take());
                }
                TokenTree::Ident(word) if word == "use" && !is_punct(tokens.get(at + 1), '<') => {
                    let end = (at..tokens.len()).find(|&end| is_punct(tokens.get(end), ';'));
                    let end = end.unwrap_or(tokens.len());
                    let line = word.span().start().line;
                    let exported = is_exported(&tokens[..at]);
                    let names = use_tree(&tokens[at + 1..end], &[]);
                    let uses =
                        names.into_iter().map(|(name, path)| Use { name, path, exported, line });
                    self.modules[module].uses.extend(uses);
                    at = end;
                }
                TokenTree::Ident(word) => at = self.read_path(module, &tokens, at, word),
                _ => at += 1,
            }
        }
    }

    /// Reads `mod name;` or `mod name { … }`.
    fn read_module(
        &mut self,
        parent: usize,
        folder: &str,
        tokens: &[TokenTree],
        at: usize,
        path: Option<String>,
    ) -> usize {
        let Some(TokenTree::Ident(name)) = tokens.get(at + 1) else { return at + 1 };
        let name = name.to_string();
        let below = format!("{folder}/{name}");
        let file = self.modules[parent].file.clone();
        let child = match tokens.get(at + 2) {
            Some(TokenTree::Group(group)) => {
                let child = self.add(&file, Some(parent));
                self.read_tokens(child, &below, group.stream());
                child
            }
            _ => {
                let own = Path::new(&file).parent().and_then(Path::to_str).unwrap_or_default();
                let said = path.map(|path| format!("{own}/{path}"));
                let places = [format!("{below}.rs"), format!("{below}/mod.rs")];
                let mut places = said.into_iter().chain(places);
                let Some(file) = places.find(|place| self.sources.contains_key(place)) else {
                    return at + 3;
                };
                self.read_file(&file, &below, Some(parent))
            }
        };
        self.modules[parent].children.insert(name, child);
        at + 3
    }

    /// Reads a name and what follows it after `::`.
    fn read_path(
        &mut self,
        module: usize,
        tokens: &[TokenTree],
        start: usize,
        first: &proc_macro2::Ident,
    ) -> usize {
        let module = &mut self.modules[module];
        let (mut path, mut at) = (vec![first.to_string()], start + 1);
        while let Some([separator @ .., TokenTree::Ident(next)]) = tokens[at..].first_chunk::<3>()
            && is_path_separator(separator)
        {
            path.push(next.to_string());
            at += 3;
        }
        if ITEMS.contains(&path[0].as_str()) {
            let named = tokens[at..].iter().find_map(|token| match token {
                TokenTree::Ident(name) => Some(name.to_string()),
                _ => None,
            });
            module.items.extend(named);
        }
        module.words.extend(path.first().cloned());
        if path.len() > 1 && !tokens[..start].last_chunk().is_some_and(is_path_separator) {
            module.paths.push((path, first.span().start().line));
        }
        at
    }

    /// Resolves `path`, written in module `from`; `None` if it leads out of the crate.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        if depth > DEPTH_MAX {
            return None;
        }
        let module = &self.modules[from];
        match first.as_str() {
            "crate" => self.walk(0, rest, depth),
            "self" => self.walk(from, rest, depth),
            "super" => self.walk(module.parent?, rest, depth),
            name if module.children.contains_key(name) => self.walk(from, path, depth),
            name => {
                let used = module.uses.iter().find(|used| used.name.as_deref() == Some(name))?;
                match self.resolve(from, &used.path, depth + 1)? {
                    Target::Module(module) => self.walk(module, rest, depth + 1),
                    item => Some(item),
                }
            }
        }
    }

    /// Resolves a path inside a module. A name that is not found is taken for an item that a macro
    /// defines.
    fn walk(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        let Some((first, rest)) = path.split_first() else {
            return Some(Target::Module(module));
        };
        let found = match first.as_str() {
            "self" => Some(Target::Module(module)),
            "super" => Some(Target::Module(self.modules[module].parent?)),
            name => self.look_up(module, name, depth),
        };
        match found {
            Some(Target::Module(next)) => self.walk(next, rest, depth),
            Some(item) => Some(item),
            None => Some(Target::Item(module)),
        }
    }

    /// Resolves one name inside a module.
    fn look_up(&self, module: usize, name: &str, depth: usize) -> Option<Target> {
        let here = &self.modules[module];
        if let Some(&child) = here.children.get(name) {
            return Some(Target::Module(child));
        }
        if let Some(used) = here.uses.iter().find(|used| used.name.as_deref() == Some(name)) {
            // Items of another crate count as defined here.
            return self.resolve(module, &used.path, depth + 1).or(Some(Target::Item(module)));
        }
        if here.items.contains(name) {
            return Some(Target::Item(module));
        }
        let globs = here.uses.iter().filter(|used| used.name.is_none());
        let mut meanings =
            globs.filter_map(|used| match self.resolve(module, &used.path, depth + 1)? {
                Target::Module(other) => self.look_up(other, name, depth + 1),
                Target::Item(_) => None,
            });
        meanings.next()
    }

    /// True if module `inner` is within module `outer`.
    fn is_within(&self, inner: usize, outer: usize) -> bool {
        let up = |&module: &usize| self.modules[module].parent;
        std::iter::successors(Some(inner), up).any(|module| module == outer)
    }

    /// Returns all imports from file to file. A name that a module re-exports from its own
    /// descendants and does not use itself is not an import. A `use` of a whole module is not one
    /// either: the paths through it are imports.
    pub fn imports(&self) -> Vec<Import> {
        let mut all = Vec::new();
        for (number, module) in self.modules.iter().enumerate() {
            let mut add = |path: &[String], target: usize, line: usize| {
                let to = &self.modules[target].file;
                if *to != module.file {
                    let (from, to) = (module.file.clone(), to.clone());
                    all.push(Import { from, to, line, path: path.join("::") });
                }
            };
            for used in &module.uses {
                let Some(target) = self.resolve(number, &used.path, 0) else { continue };
                let (place, is_item) = match target {
                    Target::Module(place) => (place, used.name.is_none()),
                    Target::Item(place) => (place, true),
                };
                let idle = !used.name.as_ref().is_some_and(|name| module.words.contains(name));
                let shown = used.exported && idle && self.is_within(place, number);
                if is_item && !shown {
                    add(&used.path, place, used.line);
                }
            }
            for (path, line) in &module.paths {
                if let Some(Target::Item(place)) = self.resolve(number, path, 0) {
                    add(path, place, *line);
                }
            }
        }
        all
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// True if the tokens are `::`.
fn is_path_separator(tokens: &[TokenTree; 2]) -> bool {
    tokens.iter().all(|token| is_punct(Some(token), ':'))
}

/// Returns the text inside `#[…]` or `#![…]` at `at`, and its end.
fn attribute(tokens: &[TokenTree], at: usize) -> (String, usize) {
    let start = if is_punct(tokens.get(at + 1), '!') { at + 2 } else { at + 1 };
    match tokens.get(start) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            (group.stream().to_string(), start + 1)
        }
        _ => (String::new(), at + 1),
    }
}

fn is_for_tests(attribute: &str) -> bool {
    let words = attribute.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    match words[..] {
        ["test"] => true,
        ["cfg", ref of @ ..] => of.contains(&"test") && !of.contains(&"not"),
        _ => false,
    }
}

/// Returns the index behind the item that begins at `start`: after its first `;` or braces.
fn after_item(tokens: &[TokenTree], start: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punct(Some(token), ';'),
    };
    tokens[start..].iter().position(ends).map_or(tokens.len(), |length| start + length + 1)
}

/// True if the tokens end in `pub` or `pub(…)`.
fn is_exported(before: &[TokenTree]) -> bool {
    let word = match before {
        [.., word, TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => word,
        [.., word] => word,
        [] => return false,
    };
    matches!(word, TokenTree::Ident(word) if word == "pub")
}

/// Returns the names that the tree of a `use` declaration introduces, each with its path.
fn use_tree(tokens: &[TokenTree], prefix: &[String]) -> Vec<(Option<String>, Vec<String>)> {
    let mut found = Vec::new();
    for branch in tokens.split(|token| is_punct(Some(token), ',')) {
        let mut path = prefix.to_vec();
        let mut alias = None;
        let mut is_leaf = true;
        let mut words = branch.iter();
        while let Some(token) = words.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => alias = words.next(),
                TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    found.extend(use_tree(&inner, &path));
                    is_leaf = false;
                }
                TokenTree::Punct(star) if star.as_char() == '*' => {
                    found.push((None, path.clone()));
                    is_leaf = false;
                }
                _ => {}
            }
        }
        if is_leaf && !branch.is_empty() {
            let name = alias.map(ToString::to_string).or_else(|| path.last().cloned());
            found.push((name, path));
        }
    }
    found
}
