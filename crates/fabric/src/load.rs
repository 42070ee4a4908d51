//! Conversion of a YAML text to a checked fabric, or to the first error with its position.

use crate::document::Document;
use crate::error::{LoadError, Problem};
use crate::file::{File, ShortOr, Topology};
use crate::keys::{Keys, OldKey};
use crate::model::Fabric;
use crate::renamed;
use crate::traffic::AppEntry;
use serde_saphyr::Error as YamlError;
use std::path::Path;

/// Expectation for the whole file, in errors.
const WHOLE: &str = "a fabric file in YAML";
/// Maximum size of a fabric file, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a fabric file.
///
/// # Errors
/// The file cannot be read, is not YAML, or describes something impossible: file, line, column,
/// key, and the expected value.
pub fn load(path: &Path) -> Result<Fabric, LoadError> {
    parse(path, &text(path)?)
}

/// Reads a fabric file, and returns with it one warning for each renamed key: file, line, column,
/// the old and the new key.
///
/// # Errors
/// As for [`load`].
pub fn load_with_warnings(path: &Path) -> Result<(Fabric, Vec<String>), LoadError> {
    parse_with_warnings(path, &text(path)?)
}

/// Parses a text, such as standard input, and returns with the fabric one warning for each renamed
/// key. `path` is the name of the text in errors and warnings.
///
/// # Errors
/// As for [`load`].
pub fn parse_with_warnings(path: &Path, text: &str) -> Result<(Fabric, Vec<String>), LoadError> {
    Ok((parse(path, text)?, warnings(path, &Keys::of(text))))
}

/// Returns one warning for each renamed key.
pub(crate) fn warnings(path: &Path, keys: &Keys) -> Vec<String> {
    let warning = |old: &OldKey| {
        let (file, (line, column)) = (path.display(), old.at);
        let OldKey { path, new_path, .. } = old;
        format!(
            "{file}:{line}:{column}: {path} is now {new_path}; the next version of axon will \
             refuse the old key"
        )
    };
    keys.old().iter().map(warning).collect()
}

/// Refuses a file that gives a key by its old and by its new name.
fn check_old_keys(path: &Path, keys: &Keys) -> Result<(), LoadError> {
    let Some(old) = keys.old().iter().find(|old| old.is_twice) else { return Ok(()) };
    let problem = Problem::new(
        &old.path,
        format!("it is the old name of {}, which is there too", old.new_path),
        format!("{} alone", old.new_path),
    );
    Err(LoadError { file: path.into(), position: Some(old.at), problem })
}

/// Returns the text of a fabric file.
///
/// # Errors
/// The file cannot be read, is too long, or is not UTF-8 text.
pub fn text(path: &Path) -> Result<String, LoadError> {
    read(path).map_err(|problem| unplaced(path, problem))
}

fn read(path: &Path) -> Result<String, Problem> {
    let expected = "a fabric file in YAML, such as scenarios/ring3.yaml";
    let cannot =
        |error: std::io::Error| Problem::new("", format!("cannot be read: {error}"), expected);
    let bytes = std::fs::metadata(path).map_err(cannot)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(Problem::new("", format!("it has {bytes} bytes"), "at most 16 MiB"));
    }
    let text = String::from_utf8(std::fs::read(path).map_err(cannot)?);
    text.map_err(|_| Problem::new("", "it is no text in UTF-8", expected))
}

/// Adds the position to a problem that a runtime has with the fabric of the file at `path`: the
/// line and the column of its key, where the file can still be read.
pub fn placed(path: &Path, problem: Problem) -> LoadError {
    let text = text(path).ok();
    let position = text.map(|text| Keys::of(&text).position(&problem.key));
    LoadError { file: path.into(), position, problem }
}

fn unplaced(path: &Path, problem: Problem) -> LoadError {
    LoadError { file: path.into(), position: None, problem }
}

/// Parses the text of a fabric file. `path` is its name in errors, and `key_file` is relative to
/// its folder.
///
/// # Errors
/// As for [`load`].
pub fn parse(path: &Path, text: &str) -> Result<Fabric, LoadError> {
    parse_with(path, text, |file| read_named(path, file))
}

/// Parses the text of a fabric file; `complete` fills in the contents of the files that it refers
/// to.
pub(crate) fn parse_with(
    path: &Path,
    text: &str,
    complete: impl FnOnce(&mut File) -> Result<(), Problem>,
) -> Result<Fabric, LoadError> {
    let keys = Keys::of(text);
    check_old_keys(path, &keys)?;
    let place = |problem: Problem| LoadError {
        file: path.into(),
        position: Some(keys.position(&problem.key)),
        problem,
    };
    let short = if keys.has_null() { without_nulls(text).map_err(place)? } else { None };
    let mut file = match short {
        None => read_yaml((path, text), &keys)?,
        Some(short) => {
            read_yaml((path, &short), &Keys::of(&short)).map_err(|error| place(error.problem))?
        }
    };
    complete(&mut file).map_err(place)?;
    crate::build::build(&file).map_err(place)
}

/// Returns the text without its keys without values, or `None` if it is no YAML.
fn without_nulls(text: &str) -> Result<Option<String>, Problem> {
    let Ok(mut document) = Document::of(text) else { return Ok(None) };
    document.remove_nulls()?;
    Ok(Some(document.text()))
}

/// Parses a text; errors have their position in it.
fn read_yaml((path, text): (&Path, &str), keys: &Keys) -> Result<File, LoadError> {
    let options = serde_saphyr::options! { with_snippet: false };
    let file = serde_saphyr::from_str_with_options(text, options);
    file.map_err(|error| explain((path, text), keys, &error))
}

impl Document {
    /// Builds the fabric. `path` is the name of the file in errors, and `original` is its text:
    /// errors have the line and the column of the key in it, or of the nearest enclosing key.
    ///
    /// # Errors
    /// As for [`load`](crate::load()).
    pub fn fabric(&self, path: &Path, original: &str) -> Result<Fabric, LoadError> {
        parse(path, &self.text()).map_err(|error| {
            let position = Some(Keys::of(original).position(&error.problem.key));
            LoadError { position, ..error }
        })
    }
}

/// Reads the files that the fabric file at `path` refers to.
pub(crate) fn read_named(path: &Path, file: &mut File) -> Result<(), Problem> {
    read_key_file(path, file)?;
    read_graph(path, file)?;
    if let Some(ShortOr::Long(program)) = &mut file.program
        && let Some(python) = &mut program.python
    {
        *python = path.parent().unwrap_or(Path::new("")).join(&python);
    }
    // Captures are read when traffic is checked.
    for app in file.traffic.iter_mut().flat_map(|entry| &mut entry.kinds) {
        if let AppEntry::Replay(replay) = app {
            replay.file = path.parent().unwrap_or(Path::new("")).join(&replay.file);
        }
    }
    Ok(())
}

/// Replaces `key_file` by the text of that file.
fn read_key_file(path: &Path, file: &mut File) -> Result<(), Problem> {
    let Some(key_file) = &file.key_file else {
        return Ok(());
    };
    if file.key.is_some() {
        return Err(Problem::new("key_file", "there is a key too", "either key or key_file"));
    }
    let key_path = path.parent().unwrap_or(Path::new("")).join(key_file);
    let text = std::fs::read_to_string(&key_path).map_err(|error| {
        let what = format!("{} cannot be read: {error}", key_file.display());
        Problem::new("key_file", what, "a file that `axon key` has made")
    })?;
    let text = text.trim();
    crate::secret::parse(Some(text))
        .map_err(|problem| Problem { key: "key_file".into(), ..problem })?;
    file.key = Some(text.into());
    file.key_file = Some(key_path);
    Ok(())
}

/// Reads the file of a graph into its `text`.
fn read_graph(path: &Path, file: &mut File) -> Result<(), Problem> {
    let Topology::Graph(graph) = &mut file.topology else {
        return Ok(());
    };
    let cannot = |what: String| {
        let what = format!("{} {what}", graph.file.display());
        Problem::new("topology.graph.file", what, "a file with one link a line, such as `s1 s2`")
    };
    let graph_path = path.parent().unwrap_or(Path::new("")).join(&graph.file);
    let unread = |error: std::io::Error| cannot(format!("cannot be read: {error}"));
    let bytes = std::fs::metadata(&graph_path).map_err(unread)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(cannot(format!("has {bytes} bytes, more than 16 MiB")));
    }
    graph.text = std::fs::read_to_string(&graph_path).map_err(unread)?;
    Ok(())
}

/// Converts an error of the YAML reader to a [`LoadError`] in the terms of the fabric file.
fn explain((path, text): (&Path, &str), keys: &Keys, error: &YamlError) -> LoadError {
    let position = error.location().map_or((1, 1), |at| (at.line().max(1), at.column().max(1)));
    let key = keys.at(position);
    // If all of the text is YAML, tabs are not the error.
    if let (true, Some(tab)) = (keys.is_cut(), tab_indent(text, position.0)) {
        let problem = Problem::new(key, "a tab indents this line", "spaces, in any number");
        return LoadError { file: path.into(), position: Some(tab), problem };
    }
    let list = |names: &[&str]| format!("one of {}", names.join(", "));
    let problem = match error.without_snippet() {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            let current = |name: &&&str| !renamed::is_old(name, expected);
            let names: Vec<&str> = expected.iter().filter(current).copied().collect();
            Problem::new(key, format!("unknown key `{field}`"), list(&names))
        }
        YamlError::SerdeUnknownVariant { variant, expected, .. } => {
            Problem::new(key, format!("`{variant}` is unknown"), list(expected))
        }
        YamlError::SerdeMissingField { field, .. } => Problem::new(
            keys.mapping_at(position),
            format!("`{field}` is missing"),
            format!("the key `{field}`"),
        ),
        YamlError::DuplicateMappingKey { .. } => {
            Problem::new(key, "this key is there twice", "every key once")
        }
        YamlError::SerdeInvalidType { unexpected, expected, .. }
        | YamlError::SerdeInvalidValue { unexpected, expected, .. } => {
            Problem::new(key, format!("{unexpected} does not fit"), type_name(expected))
        }
        YamlError::SerdeInvalidLength { len, expected, .. } => {
            Problem::new(key, format!("{len} values do not fit"), type_name(expected))
        }
        YamlError::InvalidScalar { ty, .. } => {
            Problem::new(key, "the value does not fit", type_name(ty))
        }
        YamlError::Unexpected { expected, .. } => {
            Problem::new(key, "the value does not fit", type_name(expected))
        }
        YamlError::ExpectedMappingEndAfterEnumVariantValue { .. } => {
            Problem::new(key, "there is one already", "one topology")
        }
        YamlError::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
        | YamlError::ExpectedStringKeyForExternallyTaggedEnum { .. } => {
            Problem::new(key, "nothing is chosen", "one of the keys that `axon schema` lists here")
        }
        YamlError::MultipleDocuments { .. } => {
            Problem::new("", "a second document begins here", "one document in a fabric file")
        }
        YamlError::Eof { .. } => Problem::new(key, "the text ends here", WHOLE),
        YamlError::Message { msg, .. } => match msg.split_once("; expected ") {
            Some((what, expected)) => Problem::new(key, what, expected),
            None if msg.contains("IPv4") => {
                Problem::new(key, msg.as_str(), "an address such as 10.0.0.1")
            }
            None if msg.contains("externally tagged enum") => Problem::new(
                key,
                "nothing is chosen",
                "one of the keys that `axon schema` lists here",
            ),
            None => Problem::new(key, "the value does not fit", "what `axon schema` lists here"),
        },
        other if other.to_string().contains("found a tab") => {
            Problem::new(key, "there is a tab", "spaces, in any number")
        }
        _ => Problem::new(key, "this is no YAML", "matching quotes, brackets and indentation"),
    };
    LoadError { file: path.into(), position: Some(position), problem }
}

/// Returns line and column of a tab that indents `line` or the next one, unless only a comment
/// follows. YAML requires spaces there, and its reader reports a consequence of the tab, on the
/// tab's line or on the line before.
fn tab_indent(text: &str, line: u64) -> Option<(u64, u64)> {
    let lines = (1..).zip(text.lines()).filter(|(number, _)| (line..=line + 1).contains(number));
    let tab = |(number, of): (u64, &str)| {
        let rest = of.trim_start_matches([' ', '\t']);
        let indent = of[..of.len() - rest.len()].find('\t')?;
        let has_content = !rest.is_empty() && !rest.starts_with('#');
        has_content.then_some((number, indent as u64 + 1))
    };
    lines.filter_map(tab).next()
}

/// Describes a type of the reader in the terms of the fabric file.
fn type_name(name: &str) -> &str {
    match name {
        "u8" => "a whole number, 0 to 255",
        "u16" => "a whole number, 0 to 65535",
        "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "mapping start" => "a mapping: keys with values",
        "sequence start" => "a list",
        "string scalar" | "a string" => "a word or a number",
        "an array of length 2" | "a tuple of size 2" => "a list of two",
        other => other,
    }
}
