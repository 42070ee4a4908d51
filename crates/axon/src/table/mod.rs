//! `axon table show|set|clear`: tables of a programmable switch in a running lab.

mod read;
mod words;
mod write;

use crate::cli::lab::Choice;
use crate::cli::{output, say};
use anyhow::{Context, Result, bail, ensure};
use axon_linux::request::NoReply;
use axon_linux::tables::{ask, entries, rest};
use axon_pipeline::{Change, EntryCount, Shown, TableName, TablesAnswer, TablesRequest};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show or change the tables of a programmable switch of a running lab
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 done; 1 the switch refuses a change, and nothing has \
    changed; 2 it could not be tried, or wrong usage; 3 no reply: the change may have been made")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Show(ShowArguments),
    Set(SetArguments),
    Clear(ClearArguments),
}

/// Print the entries of all tables or of one, with the frames and bytes that matched each
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 done; 2 there is no such lab, switch or table, or wrong \
    usage")]
struct ShowArguments {
    #[command(flatten)]
    lab: Choice,
    /// Switch, such as s1
    switch: String,
    /// Table: udlk, tcam, mpls, ipv4, mac, prefix, interface, group or tunnel; all by default
    table: Option<String>,
    /// Print the entries as JSON
    #[arg(long)]
    json: bool,
}

/// Set entries, all of them or none
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 done; 1 the switch refuses a change, and nothing has \
    changed; 2 it could not be tried, or wrong usage; 3 no reply: the change may have been made")]
struct SetArguments {
    #[command(flatten)]
    lab: Choice,
    /// Switch, such as s1
    switch: String,
    /// Changes, with `and` between them, such as: interface 3 port 1 and mac 02:00:00:00:00:01
    /// interface 3
    #[arg(value_name = "CHANGE", required_unless_present = "file", conflicts_with = "file")]
    changes: Vec<String>,
    /// Make the changes of this file, a list of texts in JSON, in one transaction; `-` is standard
    /// input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Remove entries, all of them or none
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 done; 1 the switch refuses it, and nothing has changed; \
    2 it could not be tried, or wrong usage; 3 no reply: the change may have been made")]
struct ClearArguments {
    #[command(flatten)]
    lab: Choice,
    /// Switch, such as s1
    switch: String,
    /// Table to clear, or entries with `and` between them, such as: tcam 5 and interface 3
    #[arg(value_name = "ENTRY", required = true)]
    entries: Vec<String>,
}

/// Shows or changes tables.
///
/// # Errors
/// There is no such lab or switch, or the request cannot be parsed.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.what {
        What::Show(arguments) => show(arguments),
        What::Set(arguments) => {
            let changes = match &arguments.file {
                Some(file) => of_file(file)?,
                None => read::to_set(&split(&arguments.changes))?,
            };
            commit(&arguments.lab, &arguments.switch, &TablesRequest::Commit(changes))
        }
        What::Clear(arguments) => {
            let words = split(&arguments.entries);
            let request = match words[..] {
                [one] if read::table(one).is_some() => {
                    TablesRequest::Clear(read::table(one).context("it has just been found")?)
                }
                _ => TablesRequest::Commit(read::to_clear(&words)?),
            };
            commit(&arguments.lab, &arguments.switch, &request)
        }
    }
}

/// Splits arguments, each of which may hold several words.
fn split(arguments: &[String]) -> Vec<&str> {
    arguments.iter().flat_map(|words| words.split_whitespace()).collect()
}

/// Reads the changes in a file, each in words.
fn of_file(file: &Path) -> Result<Vec<Change>> {
    const WANTED: &str = "a list of changes in JSON, each in words";
    let name = output::name(file);
    let text = match output::is_standard(file) {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| crate::cli::file::unread(file, &error, WANTED))?;
    let list: Vec<String> =
        serde_json::from_str(&text).with_context(|| format!("{name}: expected {WANTED}"))?;
    let mut changes = Vec::new();
    for (number, words) in (1..).zip(&list) {
        let words: Vec<&str> = words.split_whitespace().collect();
        let read = read::to_set(&words);
        changes.extend(read.with_context(|| format!("{name}: change {number}"))?);
    }
    Ok(changes)
}

/// Requests changes; the exit status shows whether they are made.
fn commit(lab: &Choice, switch: &str, request: &TablesRequest) -> Result<ExitCode> {
    let socket = lab.open()?.tables_of(switch)?;
    Ok(outcome(switch, ask(&socket, request))?.into())
}

/// Prints the result of changes, and returns the exit status.
fn outcome(switch: &str, answer: Result<TablesAnswer>) -> Result<u8> {
    match answer {
        Ok(TablesAnswer::Committed(count)) => {
            let noun = if count == 1 { "change" } else { "changes" };
            say::print(&format!("{switch}: {count} {noun}\n"))?;
            Ok(0)
        }
        Ok(TablesAnswer::Refused(error)) => {
            say::note!("{switch}: refused, and nothing has changed: {error}");
            Ok(say::NO)
        }
        Ok(other) => bail!("{other:?} is no answer to this"),
        Err(error) if error.is::<NoReply>() => {
            say::note!(
                "{switch}: {error}; `axon table show {switch}` shows whether the change was made"
            );
            Ok(say::UNANSWERED)
        }
        Err(error) => Err(error),
    }
}

/// JSON output of `axon table show --json`.
#[derive(Serialize)]
struct Output<'a> {
    /// Name of the switch, such as `s1`.
    switch: &'a str,
    /// Tables that were requested, in order.
    tables: Vec<TableJson>,
    /// Action without a match, and options of ports; empty if one table was requested.
    rest: Vec<EntryJson>,
}

/// A table.
#[derive(Serialize)]
struct TableJson {
    /// Name of the table, such as `tcam`.
    table: &'static str,
    /// Maximum number of entries.
    size: u32,
    /// Number of entries in the table.
    entries: Vec<EntryJson>,
}

/// A table entry.
#[derive(Serialize)]
struct EntryJson {
    /// Entry in words, as accepted by `axon table set`.
    entry: String,
    /// Frames that matched the entry; 0 for entries that no frame is looked up for.
    frames: u64,
    /// Bytes of these frames as received, without FCS.
    bytes: u64,
    /// True if frames are looked up for it and counted.
    is_looked_up: bool,
}

impl EntryJson {
    fn of(shown: Shown) -> EntryJson {
        let Shown { change, frames, bytes } = shown;
        EntryJson {
            entry: write::text(&change),
            frames,
            bytes,
            is_looked_up: change.entry().is_looked_up(),
        }
    }
}

fn show(arguments: &ShowArguments) -> Result<ExitCode> {
    let only = arguments.table.as_deref().map(|name| {
        let names = TableName::ALL.map(TableName::name).join(", ");
        read::table(name).with_context(|| format!("no table {name}; expected one of {names}"))
    });
    let only = only.transpose()?;
    let switch = &arguments.switch;
    let socket = arguments.lab.open()?.tables_of(switch)?;
    let TablesAnswer::Counts(counts) = ask(&socket, &TablesRequest::Counts)? else {
        bail!("{switch} does not report how full its tables are");
    };
    let mut tables = Vec::new();
    for EntryCount { table, size, .. } in counts {
        if only.is_none_or(|only| only == table) {
            let entries = entries(&socket, table)?.into_iter().map(EntryJson::of).collect();
            tables.push(TableJson { table: table.name(), size, entries });
        }
    }
    ensure!(!tables.is_empty(), "{switch} has no such table");
    let rest = match only {
        None => rest(&socket)?.into_iter().map(EntryJson::of).collect(),
        Some(_) => Vec::new(),
    };
    let output = Output { switch, tables, rest };
    let text = if arguments.json { output::json(&output)? } else { output.text() };
    say::print(&text)?;
    Ok(say::answer(true))
}

impl Output<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        for TableJson { table, size, entries } in &self.tables {
            let _ = writeln!(text, "{table}: {} of {size}", entries.len());
            lines(&mut text, entries);
        }
        lines(&mut text, &self.rest);
        text
    }
}

/// Writes a line for each entry: frames, bytes, and the entry in words.
fn lines(text: &mut String, entries: &[EntryJson]) {
    let width = |of: fn(&EntryJson) -> u64| {
        entries.iter().map(|entry| of(entry).to_string().len()).max().unwrap_or(0)
    };
    let (frames, bytes) = (width(|entry| entry.frames), width(|entry| entry.bytes));
    for entry in entries {
        let _ = match entry.is_looked_up {
            true => writeln!(
                text,
                "  {:>frames$} frames {:>bytes$} B  {}",
                entry.frames, entry.bytes, entry.entry
            ),
            false => writeln!(text, "  {}", entry.entry),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_says_whether_the_tables_have_changed() {
        assert_eq!(outcome("s1", Ok(TablesAnswer::Committed(1))).unwrap(), 0);
        let lost = NoReply::new("none within 2 s");
        assert_eq!(outcome("s1", Err(lost.into())).unwrap(), 3, "they may have");
        let untried = anyhow::anyhow!("no node takes commands");
        assert!(outcome("s1", Err(untried)).is_err());
    }
}
