//! Checks docs/outputs.md against the types that write JSON and CSV, and against the output of
//! commands. `BLESS=1` rewrites the page.

#[path = "../../../../cli/tests/outputs/mod.rs"]
mod cli_outputs;

use crate::common::{Folder, axon, root, scenario};
use cli_outputs::PAGE;
use cli_outputs::model::{Body, Field, Model, Shape};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Minimum number of words that describe a key.
const MEANING_WORDS_MIN: usize = 4;
const HEAD: &str = "\
# Outputs

Every key of the JSON and every column of the CSV that `axon` writes. This page is made from the
types that are written and the comments above their fields:
`BLESS=1 cargo test -p axon --test all outputs` renews it, and the same test without `BLESS` fails
if a key is missing here, or is here and no longer written.

- **Format.** Every JSON object has `format` at its top, the version of its format: 2. It grows when
  a key goes, or changes its meaning or its unit. A new key leaves it as it is, so readers skip keys
  that they do not know. CSV has no place for a version that its readers would understand: it stands
  beside the tables, with the names of their columns, in `format.json` (`axon sim --csv`,
  `axon sweep`), `NAME-format.json` (`axon cam --csv`) or `outcome.json` (`axon reproduce`). A new
  column is the last one, but in the table of a sweep, whose columns are known by their names.
- **Machine.** What depends on the wall clock, the memory or the threads of the machine stands in
  one object, `machine`. Two runs of one version with the same seed differ in this object only.
  Exceptions are what is measured in real time: `axon status`, `axon top`, `axon ping`,
  `axon probe --live`, `axon conformance --iface`, `axon bench`, experiments of `axon reproduce`
  that run on Linux, and a run that was interrupted or went past its `--memory-max`.
- **Units.** A key that ends in a unit is in that unit: `_ns` nanoseconds, `_us` microseconds, `_ms`
  milliseconds, `_ps` picoseconds, `_ticks` units of 10 ps, `_bps` bits per second, `_bytes` bytes,
  `_frames` and `_packets` a count of these. Other numbers are counts, or their meaning has the
  unit. Times without the word \"wall\" are simulated, or those of a running lab.
- **Missing.** What is not known or does not apply is `null` in JSON and an empty field in CSV; zero
  is a zero that was counted.
- **CSV** is RFC 4180 with a line feed at the end of each line and a first line of column names.
  Fields that need quotes have them.

";

/// A section of the page: its title, the text before the keys, and the type with the end of its
/// file's path.
struct Section {
    title: &'static str,
    about: &'static str,
    of: (&'static str, &'static str),
}

const fn section(
    title: &'static str,
    about: &'static str,
    of: (&'static str, &'static str),
) -> Section {
    Section { title, about, of }
}

const SIM: &str = "axon/src/sim/finish.rs";
const CSV: &str = "axon/src/sim/csv.rs";
const SWEEP: &str = "`axon sweep`: `runs.csv`, `runs.parquet` and `runs/000001.json`";
const FORMAT: &str = "`format` is at the top of the object too.";
const SECTIONS: [Section; 26] = [
    section("`axon sim --json`", FORMAT, ("Output", SIM)),
    section("`axon sim --csv`: `flows.csv`", "", ("FlowRow", CSV)),
    section("`axon sim --csv`: `ports.csv`", "", ("PortRow", CSV)),
    section("`axon sim --csv`: `drops.csv`", "", ("DropRow", CSV)),
    section("`axon sim --csv`: `ended.csv`", "", ("EndedRow", CSV)),
    section("`axon sim --csv`: `samples.csv`", "", ("SampleRow", CSV)),
    section("`format.json`", FORMAT, ("CsvFormat", "cli/src/output.rs")),
    section(
        SWEEP,
        "`format` is at the top of the object too. The tables have a row for each run: first the \
         parameters, as `--over` names them, then `status` and `reason`, then the figures, whose \
         columns are named by the paths of their keys: `events`, `rounds.1.answered`, \
         `drops.queue_full`, `traffic.udp1.received_bytes`. A column is there if a run has it.",
        ("Kept", "sweep/store.rs"),
    ),
    section("`axon sweep`: `sweep.json`", FORMAT, ("Record", "sweep/store.rs")),
    section("`axon prove --json`", FORMAT, ("ProofJson", "prove/json.rs")),
    section("`axon probe --json`", FORMAT, ("Summary", "probe/summary.rs")),
    section("`axon conformance --json`", FORMAT, ("Report", "conformance/src/report/mod.rs")),
    section("`axon reproduce --json`", FORMAT, ("Output", "papers/src/bin/axon-reproduce.rs")),
    section(
        "`axon reproduce`: `outcome.json`",
        "In the folder of each experiment, beside its tables (`NAME.csv`, whose columns are named \
         with their units) and plots (`NAME.svg`).",
        ("Kept", "reproduce/store.rs"),
    ),
    section("`axon bench --json`", FORMAT, ("Report", "bench/src/report.rs")),
    section(
        "`axon cam --json`",
        "`format` is at the top of the object too. The columns of `--csv` are the kind of \
         addresses, the entries, and the two hit rates, 0 to 1.",
        ("ReportJson", "axon/cam/mod.rs"),
    ),
    section("`axon model forwarder --json`", FORMAT, ("Output", "model/src/main.rs")),
    section("`axon ping --json`", FORMAT, ("Output", "axon/src/ping.rs")),
    section(
        "`axon status --json`",
        "`format` is at the top of the object too. The socket of a daemon has one `Status`, \
         without `format`.",
        ("Output", "axon/src/status.rs"),
    ),
    section("`axon hosts --json`", FORMAT, ("Output", "axon/src/hosts.rs")),
    section("`axon flows --json`", FORMAT, ("Output", "axon/src/flows.rs")),
    section("`axon path --json`", FORMAT, ("Output", "axon/src/path.rs")),
    section("`axon top --json`", FORMAT, ("Output", "axon/src/top.rs")),
    section(
        "`axon attach --json`",
        "`format` is at the top of the object too. The socket of an agent has one \
         `AttachmentStatus`, without `format`.",
        ("Output", "axon/src/attach.rs"),
    ),
    section("`axon table show --json`", FORMAT, ("Output", "axon/src/table/mod.rs")),
    section("`axon trace-packet --json`", FORMAT, ("Output", "axon/src/trace_packet.rs")),
];

#[test]
fn the_page_has_every_key_with_its_meaning() {
    let page = page();
    let path = root().join(PAGE);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (there.lines().collect(), page.lines().collect());
    let missing: Vec<_> = new.difference(&old).collect();
    let stale: Vec<_> = old.difference(&new).collect();
    assert!(
        there == page,
        "{PAGE} is not what the types say; BLESS=1 renews it\nmissing: {missing:#?}\n\
         stale: {stale:#?}"
    );
}

fn page() -> String {
    let mut model = Model::read(&root());
    let mut text = HEAD.to_owned();
    let mut shown = BTreeSet::new();
    for section in &SECTIONS {
        let (name, file) = section.of;
        let at = model.root(name, file);
        writeln!(text, "## {}\n", section.title).unwrap();
        let about = [model.types[at].doc.as_str(), section.about].map(str::trim).join(" ");
        writeln!(text, "{}\n", wrapped(about.trim())).unwrap();
        table(&mut text, &model, at);
        shown.insert(at);
        let mut ahead: Vec<usize> = below(&model, at);
        while !ahead.is_empty() {
            let at = ahead.remove(0);
            if !shown.insert(at) {
                continue;
            }
            writeln!(text, "### {}\n\n{}\n", heading(&model, at), wrapped(&model.types[at].doc))
                .unwrap();
            table(&mut text, &model, at);
            ahead.splice(0..0, below(&model, at));
        }
    }
    format!("{}\n", text.trim_end())
}

/// Returns the types of a type's values, in the order of its keys.
fn below(model: &Model, at: usize) -> Vec<usize> {
    fn of(shape: &Shape) -> Option<usize> {
        match shape {
            Shape::Type(at) => Some(*at),
            Shape::List(of_one) | Shape::Map(of_one) | Shape::Maybe(of_one) => of(of_one),
            Shape::Plain(_) => None,
        }
    }
    match &model.types[at].body {
        Body::Texts(_) => Vec::new(),
        _ => model.keys(at).iter().filter_map(|field| of(&field.shape)).collect(),
    }
}

/// Returns the heading of a type: its name, with a number if an earlier type has the same name.
fn heading(model: &Model, at: usize) -> String {
    let name = model.types[at].name.trim_end_matches("Json");
    let before = &model.types[..at];
    let same = before.iter().filter(|one| one.name.trim_end_matches("Json") == name).count();
    if same == 0 { name.to_owned() } else { format!("{name} {}", same + 1) }
}

/// Asserts that a meaning is a sentence that can be read alone.
fn check_meaning(of: &str, meaning: &str) {
    let problem = meaning_problem(meaning);
    assert!(problem.is_none(), "{of}: `{meaning}` {}", problem.unwrap_or_default());
}

/// Returns why a comment does not explain a key to a reader without the code, or `None`.
fn meaning_problem(meaning: &str) -> Option<&'static str> {
    if meaning.starts_with("See `") {
        return Some("leads into the code; expected what it is, in which unit");
    }
    let short = meaning.split_whitespace().count() < MEANING_WORDS_MIN;
    short.then_some("is too short; expected a sentence: what it is, in which unit")
}

#[test]
fn a_meaning_that_names_code_or_leaves_out_what_it_is_about_is_refused() {
    for meaning in ["", "Of both.", "Whether it is.", "See `Case::name`, which has it all."] {
        assert!(meaning_problem(meaning).is_some(), "{meaning}");
    }
    assert_eq!(meaning_problem("When the round began."), None);
}

fn table(text: &mut String, model: &Model, at: usize) {
    let name = &model.types[at].name;
    let is_form = matches!(model.types[at].body, Body::Forms(_));
    let mut fields_of = |fields: &[Field]| {
        writeln!(text, "| key | value | unit | meaning |\n|---|---|---|---|").unwrap();
        for field in fields {
            let Field { key, shape, optional, doc } = field;
            // Descriptions of the keys of an enum variant begin with the variant's name.
            let alone = doc.split_once(": ").filter(|_| is_form).map_or(&doc[..], |(_, doc)| doc);
            check_meaning(&format!("{key} of {name}"), alone);
            let may = if *optional { "; may be left out" } else { "" };
            let value = format!("{}{may}", value(model, shape));
            writeln!(text, "| `{key}` | {value} | {} | {} |", unit(key), cell(doc)).unwrap();
        }
        text.push('\n');
    };
    match &model.types[at].body {
        Body::Object(fields) => fields_of(fields),
        Body::Forms(_) => fields_of(&model.keys(at)),
        Body::Texts(texts) => {
            writeln!(text, "| value | meaning |\n|---|---|").unwrap();
            for (value, doc) in texts {
                check_meaning(&format!("{value} of {name}"), doc);
                writeln!(text, "| `{value}` | {} |", cell(doc)).unwrap();
            }
            text.push('\n');
        }
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Describes a value in words.
fn value(model: &Model, shape: &Shape) -> String {
    match shape {
        Shape::Plain(text) => text.clone(),
        Shape::List(of) => format!("list of {}", value(model, of)),
        Shape::Map(of) => format!("object by name: {}", value(model, of)),
        Shape::Maybe(of) => format!("{} or null", value(model, of)),
        Shape::Type(at) => {
            let heading = heading(model, *at);
            format!("[{heading}](#{})", heading.to_lowercase().replace(' ', "-"))
        }
    }
}

/// Returns the unit that the suffix of a key names.
fn unit(key: &str) -> &'static str {
    let key = key.trim_end_matches("_max").trim_end_matches("_min");
    let last = key.rsplit(['_', '.']).next().unwrap_or(key);
    match last {
        "ns" | "us" | "ms" | "ps" => {
            ["ns", "us", "ms", "ps"].into_iter().find(|unit| *unit == last).unwrap_or_default()
        }
        "ticks" => "10 ps",
        "bps" => "bit/s",
        "bytes" => "bytes",
        "frames" => "frames",
        "packets" => "packets",
        "percent" => "%",
        "seconds" => "s",
        "1000s" => "1/1000 s",
        "second" if key.ends_with("bytes_per_second") => "bytes/s",
        "second" => "1/s",
        "bits" => "bits",
        "quanta" => "512 bit times",
        _ => "",
    }
}

/// Wraps a text at 100 characters.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().unwrap();
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= 100 {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// Checks a command's JSON against the type of its section, except for `format`, which is 2.
fn checked(title: &str, value: Value) {
    let section = SECTIONS.iter().find(|section| section.title == title).unwrap();
    cli_outputs::checked(title, section.of, value);
}

/// Runs `axon` twice and asserts that only `machine` differs.
fn twice(arguments: &[&str]) -> Value {
    cli_outputs::twice(env!("CARGO_BIN_EXE_axon"), arguments)
}

#[test]
fn runs_with_one_seed_differ_in_the_machine_alone_and_have_the_keys_of_the_page() {
    let folder = Folder::new("outputs");
    let line = "topology: { line: { switches: 2 } }";
    let lossless = scenario("deadlock5");
    let traffic = "traffic: [{ from: h1, to: h2, udp: { rate: 9Mbps }, stop: 5ms }]\nfaults: \
        [{ at: 20s, crash: s2 }]";
    let flows = folder.file("flows.yaml", format!("name: a\n{line}\n{traffic}\n"));
    let ring = scenario("ring3");
    let line = scenario("line3");
    let conformance = ["conformance", "pfc", "--case", "xon", "--json"];
    for (title, arguments) in [
        ("`axon sim --json`", &["sim", &ring, "--json", "-"][..]),
        ("`axon sim --json`", &["sim", &flows, "--json", "-"]),
        ("`axon prove --json`", &["prove", &ring, "--json", "-"]),
        ("`axon prove --json`", &["prove", &lossless, "--json", "-"]),
        ("`axon prove --json`", &["prove", &ring, "--fail", "s1,s2", "--json", "-"]),
        ("`axon prove --json`", &["prove", &ring, "--fail", "each-link", "--json", "-"]),
        ("`axon probe --json`", &["probe", &line, "--path", "s1,s2", "--count", "2", "--json"]),
        ("`axon conformance --json`", &conformance),
    ] {
        checked(title, twice(arguments));
    }
}

#[test]
fn tables_have_the_columns_of_the_page_and_their_format_beside_them() {
    let folder = Folder::new("outputs-csv");
    let csv = folder.path("csv");
    let arguments = ["sim", &scenario("ring3"), "--csv", &csv];
    assert!(axon(&arguments).status.success());
    let format: Value = serde_json::from_str(&folder.read("csv/format.json")).unwrap();
    checked("`format.json`", format.clone());
    let mut model = Model::read(&root());
    for (name, row) in [
        ("flows", "FlowRow"),
        ("ports", "PortRow"),
        ("drops", "DropRow"),
        ("ended", "EndedRow"),
        ("samples", "SampleRow"),
    ] {
        let at = model.root(row, CSV);
        let columns: Vec<String> = model.keys(at).into_iter().map(|field| field.key).collect();
        let table = folder.read(&format!("csv/{name}.csv"));
        assert_eq!(table.lines().next().unwrap(), columns.join(","), "{name}");
        assert_eq!(format["tables"][format!("{name}.csv")], Value::from(columns), "{name}");
    }
}

#[test]
fn a_sweep_writes_the_columns_and_the_keys_of_the_page() {
    let folder = Folder::new("outputs-sweep");
    let line = "topology: { line: { switches: 2 } }";
    let traffic = "traffic: [{ from: h1, to: h2, udp: { rate: 9Mbps }, stop: 5ms }]\nfaults: \
        [{ after_start: 1ms, down: [s1, s2] }]";
    let flows = folder.file("flows.yaml", format!("name: a\n{line}\n{traffic}\n"));
    let mut model = Model::read(&root());
    let at = model.root("Figures", "sweep/figures.rs");
    let known: BTreeSet<String> = model.keys(at).into_iter().map(|field| field.key).collect();
    for file in [scenario("ring3"), flows] {
        let out = folder.path("out");
        axon(&["sweep", &file, "--over", "seed=1,2", "--out", &out, "--again"]);
        let read = |name: &str| -> Value {
            serde_json::from_str(&folder.read(&format!("out/{name}"))).unwrap()
        };
        checked(SWEEP, read("runs/000001.json"));
        checked("`axon sweep`: `sweep.json`", read("sweep.json"));
        checked("`format.json`", read("format.json"));
        let table = folder.read("out/runs.csv");
        let columns: Vec<&str> = table.lines().next().unwrap().split(',').collect();
        assert_eq!(columns[..3], ["seed", "status", "reason"]);
        for column in &columns[3..] {
            let key = column.split('.').next().unwrap();
            assert!(known.contains(key), "{column}");
        }
        assert_eq!(read("format.json")["tables"]["runs.csv"], Value::from(columns));
    }
}
