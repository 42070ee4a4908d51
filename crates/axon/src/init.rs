//! `axon init TEMPLATE`: a commented fabric file to start from.

use crate::cli::output;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write a commented fabric file to start from
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 the file is written; 2 it exists, or cannot be written, or \
    wrong usage"
)]
pub struct Arguments {
    /// Fabric to start from
    #[arg(value_enum, default_value_t = Template::Ring)]
    template: Template,
    /// File to make; one that exists is never overwritten. `-` is standard output
    #[arg(default_value = "fabric.yaml")]
    file: PathBuf,
}

/// A fabric to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Template {
    /// Three switches in a row
    Line,
    /// Three switches in a ring: two paths between each pair of hosts
    Ring,
    /// A fat tree of 4-port switches, 16 hosts
    FatTree,
    /// Nine switches in a torus of three rows and columns
    Torus,
    /// Two spines above four leaves, 8 hosts
    LeafSpine,
    /// A leaf-spine whose storage and RDMA traffic is lossless: PFC, ETS, watchdog
    Lossless,
}

impl Template {
    const fn text(self) -> &'static str {
        match self {
            Template::Line => include_str!("init/line.yaml"),
            Template::Ring => include_str!("init/ring.yaml"),
            Template::FatTree => include_str!("init/fat-tree.yaml"),
            Template::Torus => include_str!("init/torus.yaml"),
            Template::LeafSpine => include_str!("init/leaf-spine.yaml"),
            Template::Lossless => include_str!("init/lossless.yaml"),
        }
    }
}

/// Writes the file, and prints the next commands.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { template, file } = arguments;
    if output::is_standard(file) {
        crate::cli::say::print(template.text())?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = file.display();
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!(
                "{name} exists, and is not overwritten; expected another name: axon init \
                   {} FILE",
                template
                    .to_possible_value()
                    .map_or_else(String::new, |value| value.get_name().to_owned())
            );
        }
        made => made.and_then(|mut out| out.write_all(template.text().as_bytes())),
    }
    .with_context(|| format!("cannot write {name}"))?;
    crate::cli::say::print(&format!(
        "{name} is written\n\n\
         axon check {name}    # what it builds\n\
         axon prove {name}    # can it deadlock, or lose lossless frames?\n\
         axon sim {name}      # simulate it\n\
         axon up {name}       # run it here, with real hosts\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}
