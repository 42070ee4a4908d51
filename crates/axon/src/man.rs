//! `axon man DIR`: manual pages.

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write manual pages: axon.1, and one for each command, such as axon-up.1
#[derive(clap::Args)]
#[command(after_help = "To read one: man DIR/axon-up.1\n\n\
    Exit status: 0 the pages are written; 2 they cannot be written, or wrong usage")]
pub struct Arguments {
    /// Folder for the pages, such as /usr/local/share/man/man1; made if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the pages of `command`, the root command of axon.
pub fn run(arguments: &Arguments, command: Command) -> Result<ExitCode> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // Gives every command its full name, and the options that it inherits from its parent.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let pages: Vec<Command> =
        [command.clone()].into_iter().chain(command.get_subcommands().cloned()).collect();
    for page in &pages {
        write(folder, page.clone())?;
    }
    crate::cli::say::print(&format!("{} pages in {}\n", pages.len(), folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one page.
fn write(folder: &Path, command: Command) -> Result<()> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.has_subcommands();
    let source = format!("axon {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command).source(source).manual("Axon");
    let path = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    // End of a command's help: an optional example, and the exit status.
    let mut more = Roff::new();
    for part in after.split("\n\n") {
        let (heading, text) = match part.split_once("Exit status") {
            Some((_, status)) => ("EXIT STATUS", status.trim_start_matches([':', ' ', ','])),
            None => ("EXAMPLES", part),
        };
        more.control("SH", [heading]);
        if text.contains('\n') {
            // A list, without line filling.
            more.control("nf", []).text([roman(text)]).control("fi", []);
        } else {
            more.text([roman(text)]);
        }
    }
    more.to_writer(&mut page)?;
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}
