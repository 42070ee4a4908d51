//! `axon status`: what switches and controller tell of themselves.

use anyhow::Result;
use axon_linux::dcbx;
use axon_linux::lab::{Lab, table};
use std::process::ExitCode;

/// Show the nodes of a running lab
#[derive(clap::Args)]
pub struct Arguments {
    /// The lab, if more than one is up
    lab: Option<String>,
    /// Everything, as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the status.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let status = Lab::open(arguments.lab.as_deref())?.status()?;
    if arguments.json {
        println!("{:#}", serde_json::Value::from(status));
    } else {
        print!("{}", table::table(&status));
        let ports = dcbx::table(&status);
        if !ports.is_empty() {
            print!("\n{ports}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
