//! A run as JUnit XML: a suite for each family, with `failure`, `error` and `skipped` for what did
//! not pass. What is inconclusive or broken is an error, and its type says which.

use super::Report;
use crate::case::{Outcome, Verdict};
use std::fmt::Write as _;

/// The document.
pub fn document(report: &Report) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"axon conformance\"{}>", totals(&report.cases));
    let families = report.cases.chunk_by(|a, b| family(a) == family(b));
    for cases in families {
        let name = in_attribute(&format!("{}/{}", report.device, family(&cases[0])));
        let _ = writeln!(text, "  <testsuite name=\"{name}\"{}>", totals(cases));
        cases.iter().for_each(|case| one(&mut text, case));
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// How many of these cases ended how, and how long they took, as attributes.
fn totals(cases: &[Outcome]) -> String {
    let count = |element: &str| {
        let ended =
            |case: &&Outcome| element_of(case.verdict).is_some_and(|(own, _)| own == element);
        cases.iter().filter(ended).count()
    };
    format!(
        " tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
        cases.len(),
        count("failure"),
        count("error"),
        count("skipped"),
        seconds(cases.iter().map(|case| case.nanos).sum()),
    )
}

/// The element that says how a case ended, and its type.
fn element_of(verdict: Verdict) -> Option<(&'static str, &'static str)> {
    match verdict {
        Verdict::Passed => None,
        Verdict::Failed => Some(("failure", "failed")),
        Verdict::Inconclusive => Some(("error", "inconclusive")),
        Verdict::Broken => Some(("error", "broken")),
        Verdict::NotApplicable => Some(("skipped", "not applicable")),
    }
}

fn one(text: &mut String, case: &Outcome) {
    let name = case.name.split_once('/').map_or(case.name, |(_, name)| name);
    let (class, time) = (family(case), seconds(case.nanos));
    let _ = writeln!(text, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time}\">");
    if let Some((element, kind)) = element_of(case.verdict) {
        let message = in_attribute(&case.reason);
        let _ = writeln!(text, "      <{element} type=\"{kind}\" message=\"{message}\"/>");
    }
    let asked = [format!("asked: {} ({})", case.says, case.clause)];
    let did = case.did.iter().map(|line| format!("did: {line}"));
    let saw = case.saw.iter().map(|line| format!("saw: {line}"));
    let lines: Vec<String> = asked.into_iter().chain(did).chain(saw).collect();
    let _ = writeln!(text, "      <system-out>{}</system-out>", escape(&lines.join("\n")));
    text.push_str("    </testcase>\n");
}

fn family(case: &Outcome) -> &str {
    case.name.split('/').next().unwrap_or(case.name)
}

fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// Text within an attribute, where white space would become blanks (XML 1.0 clause 3.3.3).
fn in_attribute(text: &str) -> String {
    let safe = escape(text);
    safe.replace('\t', "&#9;").replace('\n', "&#10;").replace('\r', "&#13;")
}

/// Text within an element (XML 1.0 clauses 2.2 and 2.4): what has a meaning is written as a
/// reference, and what XML cannot hold becomes U+FFFD.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push(letter),
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &'static str, verdict: Verdict, reason: &str) -> Outcome {
        Outcome {
            name,
            clause: "802.1Q <1> & \"2\"",
            says: "It does.",
            verdict,
            reason: reason.into(),
            did: vec!["sent \u{1}\n0xff".into()],
            saw: Vec::new(),
            nanos: 1_500_000_000,
        }
    }

    #[test]
    fn whatever_a_report_holds_is_well_formed_and_comes_back() {
        let hard = "1 < 2 & \"3\" > '2'\nnext";
        let cases = vec![
            outcome("pfc/a", Verdict::Passed, ""),
            outcome("pfc/b", Verdict::Failed, hard),
            outcome("ets/c", Verdict::NotApplicable, "no port"),
            outcome("ets/d", Verdict::Broken, "no wire"),
            outcome("ets/e", Verdict::Inconclusive, "late"),
        ];
        let text = document(&Report { device: "eth<0>".into(), cases });
        let parsed = roxmltree::Document::parse(&text).expect("well formed");
        let suites: Vec<_> = parsed.descendants().filter(|n| n.has_tag_name("testsuite")).collect();
        let counts = |n: usize| {
            ["tests", "failures", "errors", "skipped"].map(|name| suites[n].attribute(name))
        };
        assert_eq!(counts(0), ["2", "1", "0", "0"].map(Some));
        assert_eq!(counts(1), ["3", "0", "2", "1"].map(Some));
        let root = parsed.root_element();
        assert_eq!((root.attribute("tests"), root.attribute("errors")), (Some("5"), Some("2")));
        assert_eq!(suites[0].attribute("name"), Some("eth<0>/pfc"));
        assert_eq!(suites[0].attribute("time"), Some("3.000000000"));
        let failure = parsed.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert_eq!(failure.attribute("message"), Some(hard));
        let said = parsed.descendants().find(|node| node.has_tag_name("system-out")).unwrap();
        assert!(said.text().unwrap().contains("802.1Q <1> & \"2\""));
        assert!(said.text().unwrap().contains("did: sent \u{fffd}\n0xff"));
    }
}
