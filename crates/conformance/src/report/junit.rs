//! JUnit XML report: one suite for each family, with `failure`, `error` and `skipped` for cases
//! that did not pass. Inconclusive and broken cases are errors, and their types tell them apart.

use super::Report;
use crate::case::{Outcome, Verdict};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::borrow::Cow;
use std::io;

/// Returns the report as an XML document.
pub fn document(report: &Report) -> String {
    let mut bytes = Vec::new();
    write(&mut Writer::new_with_indent(&mut bytes, b' ', 2), report)
        .expect("memory takes every byte");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("all of it is text")
}

fn write(out: &mut Writer<&mut Vec<u8>>, report: &Report) -> io::Result<()> {
    out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let root = out.create_element("testsuites").with_attribute(("name", "axon conformance"));
    let root = root.with_attributes(totals(&report.cases));
    root.write_inner_content(|out| {
        let mut families = report.cases.chunk_by(|a, b| family(a) == family(b));
        families.try_for_each(|cases| suite(out, &report.device, cases))
    })?;
    Ok(())
}

/// Writes the cases of one family.
fn suite(out: &mut Writer<&mut Vec<u8>>, device: &str, cases: &[Outcome]) -> io::Result<()> {
    let name = printable(&format!("{device}/{}", family(&cases[0])));
    let element = out.create_element("testsuite").with_attribute(("name", name.as_str()));
    let element = element.with_attributes(totals(cases));
    element.write_inner_content(|out| cases.iter().try_for_each(|case| one(out, case)))?;
    Ok(())
}

/// Returns the counts by verdict and the total time, as XML attributes.
fn totals(cases: &[Outcome]) -> [(&'static str, Cow<'static, str>); 5] {
    let count = |element: &str| {
        let ended =
            |case: &&Outcome| element_of(case.verdict).is_some_and(|(own, _)| own == element);
        Cow::from(cases.iter().filter(ended).count().to_string())
    };
    [
        ("tests", cases.len().to_string().into()),
        ("failures", count("failure")),
        ("errors", count("error")),
        ("skipped", count("skipped")),
        ("time", seconds(cases.iter().map(|case| case.duration_ns).sum()).into()),
    ]
}

/// Returns the XML element and the type that stand for a verdict.
fn element_of(verdict: Verdict) -> Option<(&'static str, &'static str)> {
    match verdict {
        Verdict::Passed => None,
        Verdict::Failed => Some(("failure", "failed")),
        Verdict::Inconclusive => Some(("error", "inconclusive")),
        Verdict::Broken => Some(("error", "broken")),
        Verdict::NotApplicable => Some(("skipped", "not applicable")),
    }
}

fn one(out: &mut Writer<&mut Vec<u8>>, case: &Outcome) -> io::Result<()> {
    let name = case.name.split_once('/').map_or(case.name, |(_, name)| name);
    let (class, time) = (family(case), seconds(case.duration_ns));
    let attributes = [("classname", class), ("name", name), ("time", &time)];
    out.create_element("testcase").with_attributes(attributes).write_inner_content(|out| {
        if let Some((element, kind)) = element_of(case.verdict) {
            let message = printable(&case.reason);
            let attributes = [("type", kind), ("message", &message)];
            out.create_element(element).with_attributes(attributes).write_empty()?;
        }
        let asked = [format!("asked: {} ({})", case.says, case.clause)];
        let did = case.did.iter().map(|line| format!("did: {line}"));
        let saw = case.saw.iter().map(|line| format!("saw: {line}"));
        let lines: Vec<String> = asked.into_iter().chain(did).chain(saw).collect();
        let text = printable(&lines.join("\n"));
        out.create_element("system-out").write_text_content(BytesText::new(&text))?;
        Ok(())
    })?;
    Ok(())
}

fn family(case: &Outcome) -> &str {
    case.name.split('/').next().unwrap_or(case.name)
}

fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// Replaces by U+FFFD the characters that XML cannot contain, not even as references (XML 1.0
/// clause 2.2).
fn printable(text: &str) -> String {
    let letter = |letter| match letter {
        '\t' | '\n' | '\r' => letter,
        '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        letter => letter,
    };
    text.chars().map(letter).collect()
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
            duration_ns: 1_500_000_000,
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
