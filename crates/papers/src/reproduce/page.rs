//! `docs/papers.md`, made from the results folder alone: the same results give the same page.

use super::show::wrapped;
use super::store::{self, Kept};
use super::{ALL, Experiment};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Columns of prose in the page.
const WIDTH: usize = 110;
const HEAD: &str = "# The papers, theirs and ours\n\n\
    Made by `axon reproduce --write-docs docs/papers.md` from the last results; do not edit.\n\n\
    Papers: 000 M. Foss, *The Axon Ethernet Device*, Rice 2010; 001 Shafer et al., *Axon: A Flexible\n\
    Substrate for Source-routed Ethernet*, ANCS 2010; 002 M. Hagen, *Fairness in a data center*, UNH 2012;\n\
    004 Lu et al., *ServerSwitch*, NSDI 2011.\n\
    `axon reproduce ID` runs a row, `axon reproduce '*'` all of them; simulated figures are the same on\n\
    every machine, figures from a clock or from real hosts are not and say so.\n";

/// Writes the page, and the plots that it shows into a folder of its name beside it.
///
/// # Errors
/// A result cannot be read, or a file cannot be written.
pub fn write(out: &Path, page: &Path) -> Result<()> {
    let stem = page.file_stem().and_then(|stem| stem.to_str()).unwrap_or("papers");
    let text = text(ALL, out, stem)?;
    let plots = page.with_file_name(stem);
    fs::create_dir_all(&plots).with_context(|| format!("cannot make {}", plots.display()))?;
    for experiment in ALL {
        let Some(kept) = store::last(out, experiment.id)? else { continue };
        for (name, _) in &kept.plots {
            let from = store::folder(out, experiment.id).join(format!("{name}.svg"));
            let to = plots.join(plot_file(experiment.id, name));
            fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        }
    }
    fs::write(page, text).with_context(|| format!("cannot write {}", page.display()))
}

fn plot_file(id: &str, name: &str) -> String {
    format!("{}-{name}.svg", id.replace('/', "-"))
}

/// The page, whose plots lie in `plots`.
pub(super) fn text(all: &[&Experiment], out: &Path, plots: &str) -> Result<String> {
    let mut text = format!("{HEAD}\n| id | what | where | state |\n|---|---|---|---|\n");
    let mut parts = String::new();
    for experiment in all {
        let kept = store::last(out, experiment.id)?;
        let state = match &kept {
            None => "not run".to_owned(),
            Some(kept) if kept.pass => format!("all {} bounds held", kept.rows.len()),
            Some(kept) => {
                let missed = kept.rows.iter().filter(|row| !row.pass).count();
                format!("**{missed} of {} bounds missed**", kept.rows.len())
            }
        };
        let Experiment { id, title, source, .. } = experiment;
        text.push_str(&format!("| [{id}](#{}) | {title} | {source} | {state} |\n", anchor(id)));
        parts.push_str(&part(experiment, kept.as_ref(), plots));
    }
    Ok(text + &parts)
}

/// The anchor that renderers give to a heading: no slashes and dots.
fn anchor(id: &str) -> String {
    id.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect()
}

fn part(experiment: &Experiment, kept: Option<&Kept>, plots: &str) -> String {
    let Experiment { id, title, source, setup, .. } = experiment;
    let mut text = format!("\n## {id}\n\n**{title}** ({source}).\n");
    text.push_str(&wrapped(setup, WIDTH));
    let Some(kept) = kept else {
        return text + "\nNot run yet.\n";
    };
    text.push_str("\n| | paper | ours | unit | bound | |\n|---|---:|---:|---|---|---|\n");
    let cell = |text: &str| text.replace('|', "\\|");
    for row in &kept.rows {
        let verdict = if row.pass { "ok" } else { "**missed**" };
        let (name, unit, bound) = (cell(&row.name), cell(&row.unit), cell(&row.bound));
        let (paper, ours) = (cell(&row.paper.to_string()), cell(&row.ours.to_string()));
        text.push_str(&format!("| {name} | {paper} | {ours} | {unit} | {bound} | {verdict} |\n"));
    }
    for remark in &kept.remarks {
        let (name, unit) = (cell(&remark.name), cell(&remark.unit));
        let (paper, ours) = (cell(&remark.paper.to_string()), cell(&remark.ours.to_string()));
        text.push_str(&format!("| {name} | {paper} | {ours} | {unit} | none | |\n"));
    }
    for note in &kept.notes {
        text.push('\n');
        text.push_str(&wrapped(note, WIDTH));
    }
    for (name, title) in &kept.plots {
        text.push_str(&format!("\n![{}]({plots}/{})\n", cell(title), plot_file(id, name)));
    }
    text
}
