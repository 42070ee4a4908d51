//! `axon reproduce`: every table and figure of the papers as an experiment, judged by stated
//! bounds, with figures, plots and notes.
//!
//! An experiment is a function in the module of its paper and a line in `ALL`.

pub mod context;
mod experiment;
mod figure;
pub mod outcome;
pub mod page;
pub mod provenance;
pub mod show;
mod sources;
pub mod store;
mod verdict;

pub use context::Context;
pub use experiment::Experiment;
pub use figure::Figure;
pub use outcome::{Outcome, Row, Table};
pub use verdict::{Kind, Verdict};

use crate::axon::{self, live::process::Stop};
use crate::{hagen, payload, serverswitch};
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use store::Kept;
use wildmatch::WildMatch;

/// All experiments, in the order of the papers.
pub(crate) const ALL: &[&Experiment] = &[
    &axon::table1::simulated::EXPERIMENT,
    &axon::fig4_1::EXPERIMENT,
    &axon::table4_2::EXPERIMENT,
    &axon::table4_3::EXPERIMENT,
    &axon::fig4_4::EXPERIMENT,
    &axon::fig4_5::EXPERIMENT,
    &axon::fig4_7::EXPERIMENT,
    &axon::fig4_9::EXPERIMENT,
    &axon::fig4_10::EXPERIMENT,
    &axon::table2::EXPERIMENT,
    &axon::fig6a::EXPERIMENT,
    &axon::fig6b::EXPERIMENT,
    &axon::fig6c::EXPERIMENT,
    &axon::init::EXPERIMENT,
    &hagen::fig4_2::EXPERIMENT,
    &hagen::fig5_2::EXPERIMENT,
    &hagen::fig5_4::EXPERIMENT,
    &hagen::fig5_5::EXPERIMENT,
    &hagen::fig5_6::EXPERIMENT,
    &hagen::fig5_8::EXPERIMENT,
    &hagen::fig6_1::EXPERIMENT,
    &hagen::fig6_3::FIG6_3,
    &hagen::fig6_3::FIG6_4,
    &hagen::fig6_3::FIG6_5,
    &hagen::fig6_6::FIG6_6,
    &hagen::fig6_6::FIG6_7,
    &hagen::fig6_8::EXPERIMENT,
    &hagen::fig6_10::EXPERIMENT,
    &hagen::fig7_7::EXPERIMENT,
    &hagen::fig7_8::EXPERIMENT,
    &hagen::table7_1::EXPERIMENT,
    &hagen::fig7_11::EXPERIMENT,
    &hagen::conformance::EXPERIMENT,
    &payload::table2::EXPERIMENT,
    &payload::fig4::EXPERIMENT,
    &payload::fig6_7::EXPERIMENT,
    &payload::live::EXPERIMENT,
    &serverswitch::fig9::EXPERIMENT,
    &serverswitch::fig10::EXPERIMENT,
    &serverswitch::bcube::EXPERIMENT,
    &serverswitch::fig11::EXPERIMENT,
    &serverswitch::qcn_delay::EXPERIMENT,
    &serverswitch::api::EXPERIMENT,
];

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Results folder.
    pub out: &'a Path,
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of threads of a simulation.
    pub threads: usize,
    /// Commit of the program.
    pub commit: &'a str,
}

/// Returns the experiments that match the patterns, in the order of `ALL`: an ID, or one with `*`
/// for any characters and `?` for one.
///
/// # Errors
/// A pattern matches none; the message lists all.
pub fn select(patterns: &[String]) -> Result<Vec<&'static Experiment>> {
    select_of(ALL, patterns)
}

fn select_of<'a>(all: &[&'a Experiment], patterns: &[String]) -> Result<Vec<&'a Experiment>> {
    let parsed: Vec<WildMatch> = patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
    for (text, pattern) in patterns.iter().zip(&parsed) {
        if !all.iter().any(|experiment| pattern.matches(experiment.id)) {
            let ids: Vec<&str> = all.iter().map(|experiment| experiment.id).collect();
            bail!("no experiment is named {text}; there are: {}", ids.join(", "));
        }
    }
    let named = |id: &str| parsed.iter().any(|pattern| pattern.matches(id));
    Ok(all.iter().copied().filter(|experiment| named(experiment.id)).collect())
}

/// Runs one experiment and stores its outcome in the results folder.
///
/// # Errors
/// The experiment fails, or the folder cannot be written.
pub fn run(experiment: &Experiment, options: &Options<'_>, stop: &Stop) -> Result<Kept> {
    store::reserve(options.out, experiment.id)?;
    let folder = store::folder(options.out, experiment.id);
    let Options { seed, threads, commit, .. } = *options;
    let mut context = Context::new(experiment.id, folder, seed, threads, stop.clone());
    let outcome = (experiment.run)(&mut context).with_context(|| experiment.id)?;
    drop(context);
    store::keep(options.out, experiment, &outcome, (seed, commit))
}

#[cfg(test)]
mod tests {
    use super::provenance::Age;
    use super::*;
    use axon_plot::{Axis, Plot, Series};
    use std::collections::BTreeSet;

    fn ran(_: &mut Context) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        outcome.rows.push(Row::at_least("gain", 96.0, 99.5, "%", 96.0));
        outcome.remark("RTL", 520.0, "no RTL yet", "ns");
        outcome.note("Ours has larger buffers.");
        let mut table = Table::new("flows", &["flow", "Mb/s"]);
        table.push(vec!["h1 -> h2".into(), 957.0.into()]);
        outcome.tables.push(table);
        let series = vec![Series::ours("ours", vec![(0.0, 1.0)])];
        outcome.plots.push(Plot::bars(
            "plot",
            "Gain",
            &["line"],
            Axis::linear("rate", "Mb/s"),
            series,
        ));
        Ok(outcome)
    }

    fn failed(_: &mut Context) -> Result<Outcome> {
        bail!("no such fabric")
    }

    const GOOD: Experiment = Experiment {
        id: "axon/good",
        file: file!(),
        title: "A good one",
        source: "000 §1",
        setup: "Nothing is set up.",
        run: ran,
    };
    const BAD: Experiment = Experiment { id: "axon/bad", run: failed, ..GOOD };

    /// Uses the measurement of a real experiment, with bounds that are a little too narrow for it.
    #[test]
    fn a_bound_that_is_moved_past_the_figure_is_a_miss_in_every_form() {
        let out = std::env::temp_dir().join(format!("axon-moved-{}", std::process::id()));
        for experiment in [&hagen::fig7_7::EXPERIMENT, &hagen::fig5_2::EXPERIMENT] {
            let folder = store::folder(&out, experiment.id);
            store::reserve(&out, experiment.id).unwrap();
            let mut context = Context::new(experiment.id, folder, 1, 1, Stop::default());
            let mut outcome = (experiment.run)(&mut context).unwrap();
            let keep = |outcome: &Outcome| {
                let kept = store::keep(&out, experiment, outcome, (1, "0123456789ab")).unwrap();
                let list = show::list_of(&[experiment], &out).unwrap();
                let page = page::text(&[experiment], &out, "papers", &|_, _| Age::Current).unwrap();
                (kept.verdict, show::side_by_side(experiment, &kept), list, page)
            };
            let (verdict, side, ..) = keep(&outcome);
            assert!(verdict == Verdict::Held && !side.contains("MISSED"), "{side}");
            let number = |row: &Row| match row.ours {
                Figure::Number(number) if row.kind == Kind::Bound => Some(number),
                _ => None,
            };
            let (at, ours) = outcome
                .rows
                .iter()
                .enumerate()
                .find_map(|(at, row)| number(row).map(|number| (at, number)))
                .expect("a bound that can miss");
            let Row { name, paper, unit, .. } = outcome.rows[at].clone();
            outcome.rows[at] =
                Row::at_least(name, paper, ours, &unit, ours + ours.abs() / 1e3 + 1e-6);
            let (verdict, side, list, page) = keep(&outcome);
            assert_eq!(verdict, Verdict::Missed);
            let rows = outcome.rows.len();
            for (text, said) in [
                (&side, format!("{}: MISSED\n", experiment.id)),
                (&list, format!("missed, 1 of {rows}")),
                (&list, "1 missed".to_owned()),
                (&page, format!("**missed, 1 of {rows}**")),
                (&page, "0123456789ab, 20".to_owned()),
            ] {
                assert!(text.contains(&said), "{said}: {text}");
            }
        }
        std::fs::remove_dir_all(out).unwrap();
    }

    #[test]
    fn ids_are_one_of_a_kind_and_every_experiment_says_what_it_is() {
        let ids = ALL.iter().map(|experiment| experiment.id);
        assert_eq!(ids.collect::<BTreeSet<&str>>().len(), ALL.len());
        for experiment in ALL {
            let said = [experiment.title, experiment.source, experiment.setup];
            assert!(said.iter().all(|text| !text.is_empty()), "{}", experiment.id);
            let paper = experiment.id.split('/').next().unwrap();
            assert!(
                ["axon", "hagen", "payload", "serverswitch"].contains(&paper),
                "{}",
                experiment.id
            );
        }
    }

    #[test]
    fn patterns_pick_experiments_and_a_wrong_one_names_them_all() {
        let all = [&GOOD, &BAD];
        let ids = |patterns: &[&str]| -> Result<Vec<&str>> {
            let patterns: Vec<String> = patterns.iter().map(|&text| text.to_owned()).collect();
            Ok(select_of(&all, &patterns)?.iter().map(|experiment| experiment.id).collect())
        };
        assert_eq!(ids(&["axon/*"]).unwrap(), ["axon/good", "axon/bad"]);
        assert_eq!(ids(&["axon/bad", "axon/?ad"]).unwrap(), ["axon/bad"]);
        assert_eq!(ids(&["a*o*/*d"]).unwrap(), ["axon/good", "axon/bad"]);
        assert!(["axon/??d?", "axon/ba", "xon/bad", ""].iter().all(|&text| ids(&[text]).is_err()));
        let error = ids(&["axon/bad", "axon/nix"]).unwrap_err().to_string();
        assert!(error.contains("axon/nix") && error.contains("axon/good, axon/bad"), "{error}");
    }

    #[test]
    fn a_run_leaves_everything_and_a_failed_run_leaves_the_old_outcome() {
        let out = std::env::temp_dir().join(format!("axon-reproduce-{}", std::process::id()));
        let options = Options { out: &out, seed: 5, threads: 1, commit: "unknown" };
        let stop = Stop::default();
        assert!(store::last(&out, GOOD.id).unwrap().is_none());
        let kept = run(&GOOD, &options, &stop).unwrap();
        assert_eq!((kept.verdict, kept.seed), (Verdict::Held, 5));
        assert_eq!(kept.provenance.commit, "unknown");
        assert_eq!(store::last(&out, GOOD.id).unwrap(), Some(kept.clone()));
        for file in ["outcome.json", "flows.csv", "plot.svg"] {
            assert!(out.join("axon/good").join(file).exists(), "{file}");
        }
        let error = run(&BAD, &options, &stop).unwrap_err();
        assert_eq!(format!("{error:#}"), "axon/bad: no such fabric");
        let all = [&GOOD, &BAD];
        let list = show::list_of(&all, &out).unwrap();
        assert!(list.contains("held") && list.contains("not run"), "{list}");
        let total = "2 tables and figures: 1 held, 1 not run\n";
        assert!(list.ends_with(total), "{list}");
        let side = show::side_by_side(&GOOD, &kept);
        for part in ["99.5", "96", ">= 96", "no RTL yet", "larger buffers"] {
            assert!(side.contains(part), "{part}: {side}");
        }
        let page = |age| page::text(&all, &out, "papers", &|_, _| age).unwrap();
        let today = page(Age::Current);
        assert!(
            today.contains("papers/axon-good-plot.svg") && today.contains("not run"),
            "{today}"
        );
        assert_eq!(today, page(Age::Current));
        assert!(!today.contains("older than the code"), "{today}");
        assert!(page(Age::Older(3)).contains("**older than the code: 3 commits since**"));
        std::fs::remove_dir_all(out).unwrap();
    }
}
