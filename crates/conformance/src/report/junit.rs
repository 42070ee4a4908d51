//! A run as JUnit XML: a suite for each family, with `failure`, `error` and `skipped` for what did
//! not pass.

use super::Report;
use crate::case::{Outcome, Verdict};
use std::fmt::Write as _;

/// The document.
pub fn document(report: &Report) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let families = report.cases.chunk_by(|a, b| family(a) == family(b));
    for cases in families {
        let count = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" \
             time=\"{}\">",
            escape(&format!("{}/{}", report.device, family(&cases[0]))),
            cases.len(),
            count(Verdict::Failed),
            count(Verdict::Broken),
            count(Verdict::NotApplicable),
            seconds(cases.iter().map(|case| case.nanos).sum()),
        );
        cases.iter().for_each(|case| one(&mut text, case));
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn one(text: &mut String, case: &Outcome) {
    let name = case.name.split_once('/').map_or(case.name, |(_, name)| name);
    let (class, time) = (family(case), seconds(case.nanos));
    let _ = writeln!(text, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time}\">");
    let element = match case.verdict {
        Verdict::Passed => None,
        Verdict::Failed => Some("failure"),
        Verdict::Broken => Some("error"),
        Verdict::NotApplicable => Some("skipped"),
    };
    if let Some(element) = element {
        let _ = writeln!(text, "      <{element} message=\"{}\"/>", escape(&case.reason));
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

/// Text within an element or an attribute (XML 1.0 clauses 2.2 and 2.4): what has a meaning is
/// written as a reference, and what XML cannot hold becomes U+FFFD.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push_str(&format!("&#{};", letter as u32)),
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
        ];
        let text = document(&Report { device: "eth<0>".into(), cases });
        let parsed = roxmltree::Document::parse(&text).expect("well formed");
        let suites: Vec<_> = parsed.descendants().filter(|n| n.has_tag_name("testsuite")).collect();
        let counts = |n: usize| {
            ["tests", "failures", "errors", "skipped"].map(|name| suites[n].attribute(name))
        };
        assert_eq!(counts(0), ["2", "1", "0", "0"].map(Some));
        assert_eq!(counts(1), ["2", "0", "1", "1"].map(Some));
        assert_eq!(suites[0].attribute("name"), Some("eth<0>/pfc"));
        assert_eq!(suites[0].attribute("time"), Some("3.000000000"));
        let failure = parsed.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert_eq!(failure.attribute("message"), Some(hard));
        let said = parsed.descendants().find(|node| node.has_tag_name("system-out")).unwrap();
        assert!(said.text().unwrap().contains("802.1Q <1> & \"2\""));
        assert!(said.text().unwrap().contains("did: sent \u{fffd}\n0xff"));
    }
}
