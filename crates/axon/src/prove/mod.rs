//! `axon prove FILE`: proves before any traffic that a lossless fabric loses nothing and cannot
//! deadlock.

mod bar;
mod buffers;
mod each;
mod json;
mod names;
mod neighbours;
mod proof;
mod routes;
mod search;
mod show;
mod watchdog;

use crate::cli::output;
use crate::cli::reserve::{Reserved, apart};
use crate::cli::say::{Unwritten, note};
use anyhow::{Context, Result, bail, ensure};
use axon_fabric::assemble::{split_port, switch_index};
use axon_fabric::model::{End, Fabric, Network, RouterKind};
use proof::Asked;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Maximum number of pairs of hosts without `--pairs`: there are two routes for each, and a route
/// takes up to a kilobyte.
const PAIRS_MAX: usize = 1_000_000;

/// Prove a fabric's routes free of deadlock, or print a cycle of buffers that wait for each other
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 proved; 1 not proved; 2 it could not be tried, a result could not \
    be written, or wrong usage"
)]
pub struct Arguments {
    /// Fabric file; `-` is standard input
    file: PathBuf,
    /// Write the result as JSON; `-` writes it to standard output, and nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Check the routes of N random pairs of hosts, 1 to 100000000, and those of the traffic
    /// section, instead of all pairs; the proof holds for these only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pairs: Option<u32>,
    /// Seed of all random choices; the file's by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Router of the controller, instead of the file's controller.router
    #[arg(long, value_name = "NAME", value_parser = crate::cli::router::parser())]
    router: Option<RouterKind>,
    /// Fail this link between switches after the routes are installed: one of its ports (s1-p2) or
    /// its two switches (s1,s2); may be given more than once, all links fail together. `each-link`
    /// or `each-switch` instead fails every link, or every switch, by itself
    #[arg(long, value_name = "LINK")]
    fail: Vec<String>,
}

/// Proves the fabric; the exit status is the result.
///
/// # Errors
/// The proof could not be tried.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut fabric = crate::cli::file::load(&arguments.file)?;
    fabric.set_router(arguments.router.unwrap_or(fabric.controller.router))?;
    let asked = asked(&fabric, arguments)?;
    let mut reserved = Reserved::default();
    let written = arguments.json.iter().filter(|path| !output::is_standard(path));
    written.clone().try_for_each(|path| reserved.file(path))?;
    let inputs = [("the fabric file".to_owned(), arguments.file.clone())];
    let outputs: Vec<_> = written.map(|path| ("--json".to_owned(), path.clone())).collect();
    apart(&inputs, &outputs)?;
    reserved.keep();
    let began = Instant::now();
    let proof = routes::prove(&fabric, asked);
    let seconds = began.elapsed().as_secs_f64();
    note!("{}: {} routes in {seconds:.2} s", fabric.name, proof.dependencies.routes());
    let mut unwritten = Unwritten::default();
    if !arguments.json.as_deref().is_some_and(output::is_standard) {
        unwritten.take(crate::cli::say::print(&show::text(&proof)));
    }
    if let Some(path) = &arguments.json {
        unwritten.take(output::write(path, &output::json(&json::of(&proof))?));
    }
    Ok(unwritten.answer(proof.is_proved()))
}

/// Returns the routes to check.
fn asked(fabric: &Fabric, arguments: &Arguments) -> Result<Asked> {
    let name = &fabric.name;
    ensure!(
        fabric.network == Network::Axon,
        "{name} is none of Axon's networks: its switches choose their own routes; expected \
         network: axon"
    );
    let hosts = fabric.hosts.len();
    ensure!(hosts >= 2, "{name} has {hosts} hosts, so no routes; expected two or more");
    let all = hosts as u64 * (hosts as u64 - 1) / 2;
    let wanted = arguments.pairs.map(|pairs| pairs as usize);
    if wanted.is_none() && all > PAIRS_MAX as u64 {
        bail!(
            "{name} has {all} pairs of hosts, more than the {PAIRS_MAX} that are looked at by \
             default; expected --pairs N, which proves the routes of N of them and no others"
        );
    }
    let seed = arguments.seed.unwrap_or(fabric.seed);
    let mut pairs = axon_fabric::planned::draw_pairs(hosts, wanted.unwrap_or(PAIRS_MAX), seed);
    let drawn = pairs.len();
    let flows = fabric.traffic.iter().flat_map(|traffic| &traffic.flows);
    pairs.extend(flows.map(|&(a, b)| (a.min(b), a.max(b))));
    pairs.sort_unstable();
    pairs.dedup();
    let traffic = pairs.len() - drawn;
    let (each, links): (Vec<&String>, Vec<&String>) =
        arguments.fail.iter().partition(|text| each::Each::named(text).is_some());
    let failed: Result<Vec<usize>> = links.into_iter().map(|link| find(fabric, link)).collect();
    let each = each.into_iter().filter_map(|text| each::Each::named(text)).collect();
    Ok(Asked { pairs, all, traffic, seed, failed: failed?, each })
}

/// Returns the link that `text` names, by index.
fn find(fabric: &Fabric, text: &str) -> Result<usize> {
    let expected = "expected a port between switches such as s1-p2, two switches such as s1,s2, \
                    each-link or each-switch";
    if let Some((a, b)) = text.split_once(',') {
        let switch = |name| {
            let index = switch_index(fabric, name);
            index.with_context(|| format!("--fail {text}: there is no switch {name}; {expected}"))
        };
        let (a, b) = (switch(a)?, switch(b)?);
        let joins = |at: &usize| {
            let link = &fabric.links[*at];
            [(a, b), (b, a)].contains(&(link.a.switch, link.b.switch))
        };
        let found: Vec<usize> = (0..fabric.links.len()).filter(joins).collect();
        return match found[..] {
            [link] => Ok(link),
            [] => bail!("--fail {text}: no link joins them; {expected}"),
            _ => bail!("--fail {text}: {} links join them; expected a port", found.len()),
        };
    }
    let end = split_port(text)
        .and_then(|(switch, port)| Some(End { switch: switch_index(fabric, switch)?, port }));
    let link = fabric.links.iter().position(|link| [Some(link.a), Some(link.b)].contains(&end));
    link.with_context(|| format!("--fail {text}: there is no such link; {expected}"))
}
