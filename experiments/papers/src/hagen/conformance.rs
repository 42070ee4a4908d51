//! Conformance of DCB devices (002 chapter 3): the failures that the paper describes, each put into
//! our own switch and found by a named case, and our own switch without them.

use crate::reproduce::{Context, Experiment, Figure, Outcome, Row, Table};
use anyhow::{Context as _, Result};
use axon_conformance::case::Verdict;
use axon_conformance::cases;
use axon_conformance::simulated::Simulated;
use axon_conformance::simulated::plant::Plant;

/// Experiment `hagen/conformance`: conformance of DCB devices, and the failures seen in the field.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hagen/conformance",
    file: file!(),
    title: "Conformance of DCB devices, and the failures seen in the field",
    source: "002 §3.2",
    setup: "Our own switch and controller stand between nine simulated testers on links of 10 \
            Gb/s. First all cases of PAUSE, PFC, ETS, congestion notification and DCBX are run; \
            those that are not applicable are listed with their reason and are not counted as \
            passed. Then each fault of a list is put into the switch, by its configuration or by \
            what goes in and out of it, and the case that is there to find it is run. The paper \
            names which failures were seen at test events, without figures.",
    run,
};

/// Failures described in the paper, with the corresponding faults.
const SEEN: [(&str, &[Plant]); 4] = [
    ("priorities cannot be paused independently (§3.2.1)", &[Plant::SharedQueue]),
    ("too little buffer for what is in flight after a PFC frame (§3.2.1)", &[Plant::NoHeadroom]),
    ("shares deviate by more than 10 % (§3.2.2)", &[Plant::EqualShares]),
    ("switches forward DCBX frames (§3.2.4)", &[Plant::ForwardedLldp]),
];

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut table = Table::new("cases", &["case", "clause", "verdict", "reason"]);
    for family in cases::FAMILIES {
        let chosen = cases::select(&[family.into()], &[]);
        let (mut passed, mut applicable) = (0_usize, 0_usize);
        for case in chosen {
            context.step(case.name)?;
            let done = case.run(&mut Simulated::new(None, context.seed));
            applicable += usize::from(done.verdict != Verdict::NotApplicable);
            passed += usize::from(done.verdict == Verdict::Passed);
            if done.verdict == Verdict::NotApplicable {
                outcome.note(format!("{}: not applicable: {}", done.name, done.reason));
            }
            let word = format!("{:?}", done.verdict);
            let cells = [done.name, done.clause, &word, &done.reason].map(Figure::from);
            table.push(cells.to_vec());
        }
        let bound = format!("all {applicable} that are applicable");
        let name = format!("{family}: cases that our switch passes");
        outcome.rows.push(Row::holds(name, "-", passed, "", bound, passed == applicable));
    }
    for plant in Plant::ALL {
        context.step(format!("with fault {}", plant.name()))?;
        let named = plant.found_by();
        let case = cases::all().find(|case| case.name == named);
        let case = case.with_context(|| format!("no case is named {named}"))?;
        let done = case.run(&mut Simulated::new(Some(*plant), context.seed));
        let seen = SEEN.iter().find(|(_, plants)| plants.contains(plant));
        let paper = seen.map_or("-", |(what, _)| what);
        let found = done.verdict == Verdict::Failed;
        let ours = format!("{named}: {}", done.reason);
        let name = format!("fault {}", plant.name());
        outcome.rows.push(Row::holds(name, paper, ours, "", "found by that case", found));
    }
    outcome.tables.push(table);
    Ok(outcome)
}
