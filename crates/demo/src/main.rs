//! The demo alone: `make demo` builds this program, which needs neither the simulator nor the rows
//! of the other papers. `axon demo` is the same.

#![forbid(unsafe_code)]

use axon_demo::process::Stop;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before any thread: the lab and the demo start their parts from this program.
    if let Some(status) = axon_linux::lab::part().or_else(axon_demo::part) {
        return status;
    }
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [out] = &arguments[..] else {
        eprintln!("axon-demo: expected the folder for the results");
        return ExitCode::from(2);
    };
    let out = Path::new(out);
    let stop = Stop::on_signals();
    let run = stop.as_ref().map(|stop| axon_demo::run(out, axon_cli::COMMIT, stop));
    match run.unwrap_or_else(|error| Err(anyhow::anyhow!("{error:#}"))) {
        Ok(summary) => {
            println!("\n{}\nResults are in {}", summary.text(), out.display());
            if summary.pass { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("axon-demo: {error:#}");
            let is_interrupted = stop.is_ok_and(|stop| stop.check().is_err());
            ExitCode::from(if is_interrupted { 130 } else { 2 })
        }
    }
}
