//! Our own switch passes every case, so all cases are applicable to it. A switch with an injected
//! fault fails the case that detects this fault.

use axon_conformance::case::{Outcome, Verdict};
use axon_conformance::cases;
use axon_conformance::interpretations::{Ambiguity, Interpretations};
use axon_conformance::report::text;
use axon_conformance::rig::{Halt, Rig, Seen, Stream};
use axon_conformance::setup::{Dcbx, Form, Setup};
use axon_conformance::simulated::Simulated;
use axon_conformance::simulated::plant::Plant;
use axon_wire::priority::PrioritySet;
use axon_wire::{MacAddr, Rate, Span, Time};

const SEED: u64 = 1;

fn run(family: &str, plant: Option<Plant>) -> Vec<Outcome> {
    let run = |case: &&axon_conformance::case::Case| {
        let mut rig = Simulated::new(plant, SEED);
        let outcome = case.run(&mut rig);
        print!("{}", text::case(&outcome, false));
        outcome
    };
    let chosen = cases::select(&[family.into()], &[]);
    chosen.iter().map(run).collect()
}

fn passes(family: &str) {
    let outcomes = run(family, None);
    let bad = |outcome: &&Outcome| outcome.verdict != Verdict::Passed;
    let failed: Vec<&str> = outcomes.iter().filter(bad).map(|outcome| outcome.name).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(!outcomes.is_empty());
}

#[test]
fn our_switch_honours_pause() {
    passes("pause");
}

#[test]
fn our_switch_honours_and_sends_pfc() {
    passes("pfc");
}

#[test]
fn our_switch_shares_as_configured() {
    passes("ets");
}

#[test]
fn our_switch_and_our_station_notify_congestion() {
    passes("qcn");
}

#[test]
fn our_switch_speaks_dcbx() {
    passes("dcbx");
}

/// Our own switch, used as a device that the tester cannot configure.
struct Given(Simulated, Setup);

impl Rig for Given {
    fn ports(&self) -> usize {
        self.0.ports()
    }
    fn rate(&self) -> Rate {
        self.0.rate()
    }
    fn slack(&self) -> Span {
        self.0.slack()
    }
    fn interpretations(&self) -> &Interpretations {
        self.0.interpretations()
    }
    fn absences(&self) -> &[(Time, Time)] {
        self.0.absences()
    }
    fn lost(&mut self) -> u64 {
        self.0.lost()
    }
    fn given(&self) -> Option<&Setup> {
        Some(&self.1)
    }
    fn set_up(&mut self, _: &Setup) -> Result<(), Halt> {
        self.0.set_up(&self.1)
    }
    fn device_mac(&self) -> Option<MacAddr> {
        self.0.device_mac()
    }
    fn now(&self) -> Time {
        self.0.now()
    }
    fn send(&mut self, port: usize, at: Time, frame: Vec<u8>) {
        self.0.send(port, at, frame);
    }
    fn stream(&mut self, stream: Stream) -> u16 {
        self.0.stream(stream)
    }
    fn pass(&mut self, until: Time) -> Result<Vec<Seen>, Halt> {
        self.0.pass(until)
    }
}

#[test]
fn a_device_of_the_older_form_is_failed_by_no_case_of_the_standards() {
    let three = PrioritySet::from_bits(0b0000_1000);
    let dcbx = Some(Dcbx { form: Form::Cee, ..Dcbx::default() });
    let setup = Setup { pfc: three, congestion: three, dcbx, ..Setup::with_shares(&[20, 30, 50]) };
    let run = |case: &&axon_conformance::case::Case| {
        let outcome = case.run(&mut Given(Simulated::new(None, SEED), setup.clone()));
        println!("{}", text::case(&outcome, false));
        (outcome.name, outcome.verdict)
    };
    let verdicts: Vec<_> = cases::select(&["dcbx".into()], &[]).iter().map(run).collect();
    let of = |name: &str| verdicts.iter().find(|(case, _)| *case == name).unwrap().1;
    assert!(verdicts.iter().all(|(_, verdict)| *verdict != Verdict::Failed), "{verdicts:?}");
    assert_eq!(of("dcbx/lldp-format"), Verdict::Passed);
    for name in ["pfc", "ets-configuration", "application", "congestion-notification"] {
        assert_eq!(of(&format!("dcbx/{name}-format")), Verdict::NotApplicable);
    }
}

#[test]
fn a_case_says_how_long_it_took_whatever_ran_before_on_its_rig() {
    let mut rig = Simulated::new(None, SEED);
    let chosen = cases::select(&["pause".into()], &["zero".into()]);
    let times: Vec<u64> = chosen.iter().map(|case| case.run(&mut rig).duration_ns).collect();
    assert!(times.len() > 1 && times.iter().all(|&nanos| nanos > 300_000_000), "{times:?}");
}

#[test]
fn each_fault_is_found_by_the_case_that_is_there_to_find_it() {
    for plant in Plant::ALL {
        let name = plant.found_by();
        let case = cases::all().find(|case| case.name == name);
        let case = case.unwrap_or_else(|| panic!("no case is named {name}"));
        let outcome = case.run(&mut Simulated::new(Some(*plant), SEED));
        println!("{}: {}", plant.name(), text::case(&outcome, false));
        assert_eq!(outcome.verdict, Verdict::Failed, "{} by {name}", plant.name());
    }
}

#[test]
fn the_pages_name_every_case_and_every_fault() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let read = |name| std::fs::read_to_string(format!("{docs}/{name}.md")).unwrap();
    let page = ["conformance", "conformance-cases"].map(read).concat();
    for case in cases::all() {
        let row = format!("| `{}` | {} | {} |", case.name, case.clause, case.says);
        assert!(page.contains(&row), "{row}");
    }
    for plant in Plant::ALL {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", plant.name())));
        assert!(row.is_some_and(|row| row.contains(plant.found_by())), "{}", plant.name());
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, cases::all().count() + Plant::ALL.len(), "a case or fault that is gone");
}

/// Returns the case that a device fails if it follows the other interpretation.
fn found_by(ambiguity: Ambiguity) -> Option<&'static str> {
    match ambiguity {
        Ambiguity::PfcReserved => Some("pfc/high-octet-ignored"),
        // Our own shares are within both bounds, and both tie rules have a case.
        Ambiguity::EtsBound | Ambiguity::EtsWindow | Ambiguity::Tie => None,
        Ambiguity::CnmOffset => Some("qcn/feedback-grows-with-queue"),
        Ambiguity::CnmPriority
        | Ambiguity::CnmQuote
        | Ambiguity::CnmSource
        | Ambiguity::CnmVlan => Some("qcn/cnm-format"),
        Ambiguity::CnmTag => Some("qcn/frames-without-cn-tag"),
        Ambiguity::CnmReserved => Some("qcn/rp-version-and-reserved-bits"),
    }
}

#[test]
fn each_ambiguity_is_read_either_way_and_a_device_that_reads_it_otherwise_is_found() {
    for &ambiguity in Ambiguity::ALL {
        let Some(name) = found_by(ambiguity) else { continue };
        let case = cases::all().find(|case| case.name == name).expect(name);
        let ways = [Interpretations::default(), Interpretations::other(&[ambiguity])];
        for device in &ways {
            for tester in &ways {
                let both = [device.clone(), tester.clone()];
                let outcome = case.run(&mut Simulated::with_interpretations(None, both, SEED));
                // A device may also use its own priority for the sampled frame.
                let own = ambiguity == Ambiguity::CnmVlan && tester == &ways[0];
                let good = device == tester || own;
                let wanted = if good { Verdict::Passed } else { Verdict::Failed };
                assert_eq!(outcome.verdict, wanted, "{ambiguity:?}: {outcome:?}");
            }
        }
    }
}

#[test]
fn a_share_that_is_good_by_the_link_only_is_found_by_the_stricter_bound() {
    // Equal shares instead of 30 and 70 are off by 20. Equal shares instead of 45 and 55 are off by
    // 5, which is more than 10 % of 45.
    let case = cases::all().find(|case| case.name == "ets/two-classes").expect("a case");
    let other = Interpretations::other(&[Ambiguity::EtsBound]);
    let long = Interpretations::other(&[Ambiguity::EtsWindow]);
    for (plant, interpretations, wanted) in [
        (Some(Plant::EqualShares), other.clone(), Verdict::Failed),
        (None, other, Verdict::Passed),
        (None, long, Verdict::Passed),
    ] {
        let both = [interpretations.clone(), interpretations];
        let outcome = case.run(&mut Simulated::with_interpretations(plant, both, SEED));
        assert_eq!(outcome.verdict, wanted, "{outcome:?}");
    }
}

#[test]
fn the_page_of_ambiguities_names_every_other_interpretation() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ambiguities.md");
    let page = std::fs::read_to_string(page).unwrap();
    for ambiguity in Ambiguity::ALL {
        let (name, [_, other]) = ambiguity.words();
        assert!(page.contains(&format!("--interpretation {name}={other}")), "{name}");
    }
}
