//! Page `docs/papers.md`, generated from the results folder alone: equal results give an equal
//! page.

use super::provenance::{Age, Provenance};
use super::show::{in_short, total_of, wrapped};
use super::sources::Sources;
use super::store::{self, Kept};
use super::{ALL, Experiment};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Width of prose in the page, in columns.
const WIDTH: usize = 110;
const HEAD: &str = "# The papers, theirs and ours\n\n\
    Made by `axon reproduce --write-docs docs/papers.md` from the last results; do not edit.\n\n\
    Papers: 000 M. Foss, *The Axon Ethernet Device*, Rice 2010; 001 Shafer et al., *Axon: A\n\
    Flexible Substrate for Source-routed Ethernet*, ANCS 2010; 002 M. Hagen, *Fairness in a data\n\
    center*, UNH 2012; 003 Yocum and Chase, *Fast Forwarding on Myrinet*, Duke; 004 Lu et al.,\n\
    *ServerSwitch*, NSDI 2011. `axon reproduce ID` runs a row, `axon reproduce '*'` all of them;\n\
    simulated figures are the same on every machine, figures from a clock or from real hosts are\n\
    not and say so.\n\n\
    **held**: the effect shows and every bound holds. **missed**: measured, a bound does not\n\
    hold. **not reproduced**: the paper's effect does not show. **by construction**: the figure\n\
    follows from what was set from the paper, and is not counted as held.\n";

/// Writes the page, and its plots into a folder of its name beside it.
///
/// # Errors
/// A result cannot be read, or a file cannot be written.
pub fn write(out: &Path, page: &Path) -> Result<()> {
    let stem = page.file_stem().and_then(|stem| stem.to_str()).unwrap_or("papers");
    let sources = Sources::here();
    let age = |experiment: &Experiment, provenance: &Provenance| {
        sources.as_ref().map_or(Age::Unknown, |sources| provenance.age(sources, experiment.file))
    };
    let text = text(ALL, out, stem, &age)?;
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

/// Function that returns the age of a result relative to the code that it measures.
type AgeOf<'a> = &'a dyn Fn(&Experiment, &Provenance) -> Age;

/// Returns the page, whose plots are in `plots`.
pub(super) fn text(all: &[&Experiment], out: &Path, plots: &str, age: AgeOf<'_>) -> Result<String> {
    let total = total_of(all, out)?;
    let head = "| id | what | where | verdict | commit, day |\n|---|---|---|---|---|";
    let mut text = format!("{HEAD}\n{total}.\n\n{head}\n");
    let mut parts = String::new();
    for experiment in all {
        let kept = store::last(out, experiment.id)?;
        let (state, run) = match &kept {
            None => ("not run".to_owned(), String::new()),
            Some(kept) if kept.verdict.is_good() => {
                (in_short(kept), measured(experiment, kept, age))
            }
            Some(kept) => (format!("**{}**", in_short(kept)), measured(experiment, kept, age)),
        };
        let Experiment { id, title, source, .. } = experiment;
        let link = anchor(id);
        text.push_str(&format!("| [{id}](#{link}) | {title} | {source} | {state} | {run} |\n"));
        parts.push_str(&part(experiment, kept.as_ref(), plots));
    }
    Ok(text + &parts)
}

/// Returns the commit and the day of a result, and whether its code has changed since.
fn measured(experiment: &Experiment, kept: &Kept, age: AgeOf<'_>) -> String {
    let Provenance { commit, date } = &kept.provenance;
    let age = match age(experiment, &kept.provenance) {
        Age::Current => String::new(),
        Age::Older(commits) => format!(", **older than the code: {commits} commits since**"),
        Age::Unknown => ", not a commit of this repository".to_owned(),
    };
    format!("{commit}, {date}{age}")
}

/// Returns the anchor that renderers give to a heading: no slashes and dots.
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
        let verdict = row.verdict();
        let verdict =
            if verdict.is_good() { verdict.to_string() } else { format!("**{verdict}**") };
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
