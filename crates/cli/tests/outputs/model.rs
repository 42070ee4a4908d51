//! Shape of serde's output for a type, read from the sources: keys, kinds of values, and the
//! comments of fields.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::{Attribute, Fields, GenericArgument, Item, PathArguments, Type};

/// Types with a hand-written `Serialize`, and their output.
const BY_HAND: [(&str, &str); 7] = [
    ("text::mac", "text, `02:00:00:00:00:01`"),
    ("text::optional_mac", "text, `02:00:00:00:00:01`, or null"),
    ("text::priorities", "list of numbers, 0 to 7"),
    ("counts::drops", "object: a number for each reason that occurred"),
    ("counts::ended", "object: a number for each reason that occurred"),
    ("counts::punts", "object: a number for each reason that occurred"),
    ("Counts", "object: a number for each reason that occurred"),
];

/// Shape of a value.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Number, text, or a description in words.
    Plain(String),
    /// List of values of this shape.
    List(Box<Shape>),
    /// Object with one value of this shape for each of several names.
    Map(Box<Shape>),
    /// Null or a value of this shape.
    Maybe(Box<Shape>),
    /// Type in [`Model`], by its index.
    Type(usize),
}

/// Key of an object, or column of a table.
#[derive(Clone, Debug)]
pub struct Field {
    pub key: String,
    pub shape: Shape,
    /// True if the key may be absent.
    pub optional: bool,
    pub doc: String,
}

/// Output form of a type.
#[derive(Clone, Debug)]
pub enum Body {
    /// Object with these keys.
    Object(Vec<Field>),
    /// One of several texts, each with its meaning.
    Texts(Vec<(String, String)>),
    /// Object in one of several forms, each with its keys.
    Forms(Vec<(String, Vec<Field>)>),
}

/// Type with serialised output.
#[derive(Clone, Debug)]
pub struct Written {
    pub name: String,
    pub doc: String,
    pub body: Body,
}

/// All serialised types that have been requested.
pub struct Model {
    /// Name, file and declaration of each item.
    items: Vec<(String, PathBuf, Item)>,
    pub types: Vec<Written>,
    /// Path of each import, without the name itself, by file and name.
    imports: BTreeMap<(PathBuf, String), Vec<String>>,
    places: BTreeMap<usize, usize>,
}

impl Model {
    /// Reads the sources of all crates in the repository at `root`.
    pub fn read(root: &Path) -> Model {
        let (mut items, mut imports) = (Vec::new(), BTreeMap::new());
        let mut ahead = vec![root.join("experiments"), root.join("crates")];
        while let Some(folder) = ahead.pop() {
            let mut entries: Vec<PathBuf> =
                std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            entries.sort();
            for path in entries {
                let is_source = path.extension().is_some_and(|extension| extension == "rs");
                if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
                    ahead.push(path);
                } else if is_source {
                    items.extend(declared(&path, &mut imports));
                }
            }
        }
        Model { items, types: Vec::new(), imports, places: BTreeMap::new() }
    }

    /// Returns the index of type `name` that is declared in a file whose path ends in `file`.
    pub fn root(&mut self, name: &str, file: &str) -> usize {
        let found =
            self.items.iter().position(|(its, path, _)| its == name && path.ends_with(file));
        let item = found.unwrap_or_else(|| panic!("no type {name} in {file}"));
        self.add(item)
    }

    fn add(&mut self, item: usize) -> usize {
        if let Some(&place) = self.places.get(&item) {
            return place;
        }
        let (name, file, declared) = self.items[item].clone();
        let place = self.types.len();
        self.places.insert(item, place);
        let doc = doc(attributes(&declared));
        self.types.push(Written { name: name.clone(), doc, body: Body::Object(Vec::new()) });
        self.types[place].body = self.body(&declared, &file, &name);
        place
    }

    fn body(&mut self, item: &Item, file: &Path, name: &str) -> Body {
        match item {
            Item::Struct(item) => match &item.fields {
                Fields::Named(fields) => Body::Object(self.fields(&fields.named, file)),
                _ => panic!("{name}: expected named fields"),
            },
            Item::Enum(item) => {
                let serde = Serde::of(&item.attrs);
                let rename = |name: &str| serde.rename(name);
                if item.variants.iter().all(|variant| variant.fields.is_empty()) {
                    let text = |variant: &syn::Variant| {
                        let own = Serde::of(&variant.attrs);
                        let name = || rename(&variant.ident.to_string());
                        let text = own.value("rename").unwrap_or_else(name);
                        (!own.has("skip")).then(|| (text, doc(&variant.attrs)))
                    };
                    return Body::Texts(item.variants.iter().filter_map(text).collect());
                }
                let forms = item.variants.iter().map(|variant| {
                    let of = rename(&variant.ident.to_string());
                    let content = match &variant.fields {
                        Fields::Named(fields) => self.fields(&fields.named, file),
                        Fields::Unnamed(fields) => {
                            let shape = self.shape(&fields.unnamed[0].ty, file);
                            match shape {
                                Shape::Type(at) => self.keys(at),
                                shape => vec![Field {
                                    key: String::new(),
                                    shape,
                                    optional: false,
                                    doc: doc(&variant.attrs),
                                }],
                            }
                        }
                        Fields::Unit => Vec::new(),
                    };
                    form(&serde, of, content, doc(&variant.attrs))
                });
                Body::Forms(forms.collect())
            }
            _ => panic!("{name}: expected a struct or an enum"),
        }
    }

    /// Returns the keys of an object.
    pub fn keys(&self, at: usize) -> Vec<Field> {
        match &self.types[at].body {
            Body::Object(fields) => fields.clone(),
            Body::Forms(forms) => {
                let all = forms.iter().flat_map(|(form, fields)| {
                    fields.iter().map(move |field| Field {
                        optional: true,
                        doc: format!("{form}: {}", field.doc),
                        ..field.clone()
                    })
                });
                all.collect()
            }
            Body::Texts(_) => panic!("{} is no object", self.types[at].name),
        }
    }

    fn fields<'a>(
        &mut self,
        fields: impl IntoIterator<Item = &'a syn::Field>,
        file: &Path,
    ) -> Vec<Field> {
        let mut all = Vec::new();
        for field in fields {
            let serde = Serde::of(&field.attrs);
            if serde.has("skip") {
                continue;
            }
            let shape = match serde.value("with") {
                Some(with) => {
                    by_hand(&with).unwrap_or_else(|| panic!("with = {with:?}: what is it?"))
                }
                None => self.shape(&field.ty, file),
            };
            if serde.has("flatten") {
                let Shape::Type(at) = shape else { panic!("flatten of {shape:?}") };
                all.extend(self.keys(at));
                continue;
            }
            let ident = field.ident.as_ref().unwrap().to_string();
            let key = serde.value("rename").unwrap_or(ident);
            let optional = serde.value("skip_serializing_if").is_some();
            all.push(Field { key, shape, optional, doc: doc(&field.attrs) });
        }
        all
    }

    fn shape(&mut self, ty: &Type, file: &Path) -> Shape {
        match ty {
            Type::Reference(to) => self.shape(&to.elem, file),
            Type::Slice(of) => Shape::List(Box::new(self.shape(&of.elem, file))),
            Type::Array(of) => Shape::List(Box::new(self.shape(&of.elem, file))),
            Type::Tuple(of) => Shape::List(Box::new(self.shape(&of.elems[0], file))),
            Type::Path(path) => {
                let last = path.path.segments.last().unwrap();
                let arguments: Vec<&Type> = match &last.arguments {
                    PathArguments::AngleBracketed(of) => {
                        let types = of.args.iter().filter_map(|argument| match argument {
                            GenericArgument::Type(ty) => Some(ty),
                            _ => None,
                        });
                        types.collect()
                    }
                    _ => Vec::new(),
                };
                self.named(&last.ident.to_string(), &arguments, file)
            }
            _ => panic!("a type of another kind in {}", file.display()),
        }
    }

    fn named(&mut self, name: &str, arguments: &[&Type], file: &Path) -> Shape {
        match name {
            "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i64" | "f64" => plain("number"),
            "bool" => plain("true or false"),
            "str" | "String" => plain("text"),
            "Ipv4Addr" | "IpAddr" => plain("text, `10.0.0.1`"),
            "Box" => self.shape(arguments[0], file),
            "Vec" => Shape::List(Box::new(self.shape(arguments[0], file))),
            "BTreeMap" => Shape::Map(Box::new(self.shape(arguments[1], file))),
            "Option" => match self.shape(arguments[0], file) {
                Shape::Maybe(inner) => Shape::Maybe(inner),
                inner => Shape::Maybe(Box::new(inner)),
            },
            _ => by_hand(name).unwrap_or_else(|| self.declared(name, file)),
        }
    }

    /// Of several types with the same name, chooses the one that a file refers to: its own or the
    /// imported one.
    fn among(&self, all: &[usize], name: &str, file: &Path) -> usize {
        if let Some(&here) = all.iter().find(|&&item| self.items[item].1 == file) {
            return here;
        }
        let from = self.imports.get(&(file.to_owned(), name.to_owned()));
        let from = from.unwrap_or_else(|| panic!("{name} in {}: whose is it?", file.display()));
        let of = match from[0].strip_prefix("axon_") {
            Some(other) => other.to_owned(),
            None => of_crate(file),
        };
        let is_there = |item: &usize| of_crate(&self.items[*item].1) == of;
        let inside: Vec<usize> = all.iter().copied().filter(is_there).collect();
        let is_near = |item: &&usize| {
            let path = self.items[**item].1.display().to_string();
            from[1..].iter().any(|module| path.contains(&format!("/{module}")))
        };
        match inside[..] {
            [only] => only,
            _ => *inside
                .iter()
                .find(is_near)
                .unwrap_or_else(|| panic!("{name} in {}: {} types", file.display(), inside.len())),
        }
    }

    fn declared(&mut self, name: &str, file: &Path) -> Shape {
        let all: Vec<usize> =
            (0..self.items.len()).filter(|&item| self.items[item].0 == name).collect();
        let item = match all[..] {
            [only] => only,
            _ => self.among(&all, name, file),
        };
        let (_, at, declared) = self.items[item].clone();
        let serde = Serde::of(attributes(&declared));
        if let Some(into) = serde.value("into") {
            return self.shape(&syn::parse_str(&into).unwrap(), &at);
        }
        match &declared {
            Item::Struct(of) if matches!(of.fields, Fields::Unnamed(_)) => {
                let inner = of.fields.iter().next().unwrap().ty.clone();
                self.shape(&inner, &at)
            }
            Item::Enum(of) if serde.has("untagged") && name == "Figure" => {
                assert_eq!(of.variants.len(), 3);
                plain("number, text or null")
            }
            _ => Shape::Type(self.add(item)),
        }
    }
}

/// Returns the form of an enum variant with contents, according to serde's tagging.
fn form(serde: &Serde, of: String, content: Vec<Field>, doc: String) -> (String, Vec<Field>) {
    if serde.has("untagged") {
        return (of, content);
    }
    if let Some(tag) = serde.value("tag") {
        let shape = Shape::Plain(format!("`{of}`"));
        let tag = Field { key: tag, shape, optional: false, doc };
        return (of, [vec![tag], content].concat());
    }
    // The variant gets a key that contains an object or a value.
    let (shape, inner) = match &content[..] {
        [only] if only.key.is_empty() => (only.shape.clone(), Vec::new()),
        _ => (plain("object"), content),
    };
    let variant = Field { key: of.clone(), shape, optional: false, doc };
    let inner =
        inner.into_iter().map(|field| Field { key: format!("{of}.{}", field.key), ..field });
    (of.clone(), [variant].into_iter().chain(inner).collect())
}

fn plain(text: &str) -> Shape {
    Shape::Plain(text.to_owned())
}

fn by_hand(name: &str) -> Option<Shape> {
    BY_HAND.iter().find(|(by, _)| *by == name).map(|(_, text)| plain(text))
}

/// Returns the structs and enums in a file that serde writes, including those in private modules.
/// Adds the imports of the file.
fn declared(
    path: &Path,
    imports: &mut BTreeMap<(PathBuf, String), Vec<String>>,
) -> Vec<(String, PathBuf, Item)> {
    let text = std::fs::read_to_string(path).unwrap();
    if !text.contains("Serialize") {
        return Vec::new();
    }
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for item in &file.items {
        if let Item::Use(item) = item {
            imported(&item.tree, &mut Vec::new(), &mut |name, from| {
                imports.insert((path.to_owned(), name), from);
            });
        }
    }
    let is_written = |item: &Item| {
        let derives =
            attributes(item).iter().filter(|attribute| attribute.path().is_ident("derive"));
        derives.into_iter().any(|attribute| {
            let mut found = false;
            attribute
                .parse_nested_meta(|meta| {
                    found |= meta.path.is_ident("Serialize");
                    Ok(())
                })
                .unwrap();
            found
        })
    };
    let named = file.items.into_iter().filter_map(|item| {
        let name = match &item {
            Item::Struct(item) => item.ident.to_string(),
            Item::Enum(item) => item.ident.to_string(),
            _ => return None,
        };
        is_written(&item).then(|| (name, path.to_owned(), item))
    });
    named.collect()
}

/// Returns the names in a `use` declaration and the paths that lead to them.
fn imported(
    tree: &syn::UseTree,
    from: &mut Vec<String>,
    take: &mut impl FnMut(String, Vec<String>),
) {
    match tree {
        syn::UseTree::Path(path) => {
            from.push(path.ident.to_string());
            imported(&path.tree, from, take);
            from.pop();
        }
        syn::UseTree::Name(name) => take(name.ident.to_string(), from.clone()),
        syn::UseTree::Group(group) => {
            group.items.iter().for_each(|tree| imported(tree, from, take));
        }
        syn::UseTree::Rename(_) | syn::UseTree::Glob(_) => {}
    }
}

/// Returns the folder of the crate to which a file belongs.
fn of_crate(file: &Path) -> String {
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
    let source = parts.iter().rposition(|part| part == "src").unwrap();
    parts[source - 1].to_string()
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the doc comment of an item as one line, with links to code as plain text.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let text = lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join(" ");
    text.replace("[`", "`").replace("`]", "`")
}

/// Serde attributes of an item, such as `rename_all = "snake_case"` or `flatten`.
struct Serde(BTreeMap<String, Option<String>>);

impl Serde {
    fn of(attributes: &[Attribute]) -> Serde {
        let mut all = BTreeMap::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            let read = attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().unwrap().to_string();
                let value = match meta.value() {
                    Ok(value) => Some(value.parse::<syn::LitStr>()?.value()),
                    Err(_) => None,
                };
                all.insert(name, value);
                Ok(())
            });
            read.unwrap();
        }
        Serde(all)
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn value(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned().flatten()
    }

    /// Returns the name of a variant as serde writes it.
    fn rename(&self, name: &str) -> String {
        match self.value("rename_all").as_deref() {
            None => name.to_owned(),
            Some("UPPERCASE") => name.to_uppercase(),
            Some("lowercase") => name.to_lowercase(),
            Some("snake_case") => {
                let mut text = String::new();
                for (index, letter) in name.char_indices() {
                    if letter.is_uppercase() && index > 0 {
                        text.push('_');
                    }
                    text.extend(letter.to_lowercase());
                }
                text
            }
            Some(other) => panic!("rename_all = {other:?}: what does it do?"),
        }
    }
}
