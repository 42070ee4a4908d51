//! `axon sweep` from its command line: Cartesian product, tables, errors, and continuation.

use crate::common::{Folder, axon, bad, failed, good, incomplete, scenario, text};
use crate::needs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parquet::basic::Type as Physical;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::thread::yield_now;

/// Two hosts and a stream of datagrams that ends.
const LINE: &str = "name: a\ntopology: {line: {switches: 2}}\nlinks: {rate: 100Mbps}\n\
                    traffic: [{udp: {rate: 3Mbps}, from: h1, to: h2, stop: 5ms}]\n";
/// A stream that is cut off unless it is short.
const CUT: &str = "name: cut\ntopology: {line: {switches: 2}}\n\
                   traffic: [{tcp: {bytes: 1KiB}, from: h1, to: h2}]\n\
                   faults: [{after_start: 100ms, down: [s1, s2]}]\n";

/// Returns the table of a folder: for each run, the name and value of each column.
fn table(folder: &Folder, out: &str) -> Vec<Vec<(String, String)>> {
    let text = folder.read(&format!("{out}/runs.csv"));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let row = |row: csv::StringRecord| {
        names
            .iter()
            .zip(row.iter())
            .map(|(name, cell)| (name.to_owned(), cell.to_owned()))
            .collect()
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

fn cell<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    let found = row.iter().find(|(column, _)| column == name);
    &found.unwrap_or_else(|| panic!("no column {name} in {row:?}")).1
}

fn column(rows: &[Vec<(String, String)>], name: &str) -> Vec<String> {
    rows.iter().map(|row| cell(row, name).to_owned()).collect()
}

/// Returns every file of a sweep, by name.
fn files(folder: &Folder, out: &str) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> =
        ["runs.csv", "runs.parquet", "format.json", "sweep.json"].map(str::to_owned).to_vec();
    let runs = std::fs::read_dir(folder.0.join(out).join("runs")).unwrap();
    let runs = runs.map(|entry| format!("runs/{}", entry.unwrap().file_name().display()));
    names.extend(runs);
    names.sort();
    let read = |name: String| {
        let bytes = std::fs::read(folder.0.join(out).join(&name)).unwrap();
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn every_run_is_that_of_axon_sim_and_stands_in_the_order_of_the_product() {
    let folder = Folder::new("sweep-product");
    let file = folder.file("a.yaml", LINE);
    let out = folder.path("out");
    let over = ["--over", "router=ecmp,spain", "--over", "seed=7..9..2"];
    let rate = ["--over", "traffic.0.udp.rate=1Mbps,2Mbps"];
    let output = axon(&[&["sweep", &file, "--out", &out][..], &over, &rate].concat());
    let said = good(&output);
    assert!(said.starts_with("a: 8 runs, 8 passed\n"), "{said}");
    let rows = table(&folder, "out");
    let of = |name| column(&rows, name).join(" ");
    assert_eq!(of("router"), "ecmp ecmp ecmp ecmp spain spain spain spain");
    assert_eq!(of("seed"), "7 7 9 9 7 7 9 9");
    assert_eq!(of("traffic.0.udp.rate"), ["1Mbps 2Mbps"; 4].join(" "));
    assert_eq!(of("status"), ["passed"; 8].join(" "));
    for row in &rows {
        let rate = cell(row, "traffic.0.udp.rate");
        let file = folder.file("b.yaml", LINE.replace("3Mbps", rate));
        let options = ["--seed", cell(row, "seed"), "--router", cell(row, "router")];
        let output = axon(&[&["sim", &file, "--json", "-"][..], &options].concat());
        let report: Value = serde_json::from_str(good(&output)).unwrap();
        assert_eq!(cell(row, "trace_hash"), report["trace_hash"].as_str().unwrap());
        for name in ["events", "packet_hops", "simulated_ns", "boot_ns", "hosts", "corrupted"] {
            assert_eq!(cell(row, name), report[name].to_string(), "{name}");
        }
        let flow = &report["flows"][0];
        for name in ["sent_bytes", "received_bytes", "lost_packets", "first_ns", "last_ns"] {
            assert_eq!(
                cell(row, &format!("traffic.udp1.{name}")),
                flow[name].to_string(),
                "{name}"
            );
        }
        let p99 = &report["entries"][0]["times"]["p99_ns"];
        assert_eq!(cell(row, "traffic.udp1.times_p99_ns"), p99.to_string());
        assert_eq!(cell(row, "traffic.udp1.goodput_mean_bps"), flow["goodput_bps"].to_string());
        assert_eq!(cell(row, "ended.consumed"), report["ended"]["consumed"].to_string());
    }
    assert!(rows[0].iter().all(|(name, _)| !name.contains("wall")), "nothing of the machine");
}

#[test]
fn the_files_are_the_same_with_one_job_and_with_two() {
    let folder = Folder::new("sweep-jobs");
    let file = folder.file("a.yaml", LINE);
    for jobs in ["1", "2"] {
        let out = folder.path(jobs);
        good(&axon(&["sweep", &file, "--over", "seed=1..7", "--jobs", jobs, "--out", &out]));
    }
    assert_eq!(files(&folder, "1").len(), 4 + 7);
    assert!(files(&folder, "1") == files(&folder, "2"));
}

/// Starts a sweep and waits until it has finished at least two runs.
fn begun(folder: &Folder, arguments: &[&str], out: &str) -> Child {
    let mut sweep = Command::new(env!("CARGO_BIN_EXE_axon"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !folder.0.join(out).join("runs/000002.json").exists() {
        assert!(sweep.try_wait().unwrap().is_none(), "it ended by itself");
        yield_now();
    }
    sweep
}

/// Returns the processes that are runs of a sweep.
fn runs_of(sweep: &Child) -> Vec<i32> {
    let wanted = format!("--part-of\0{}\0", sweep.id());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|of| of.contains(&wanted))
    })
    .collect()
}

/// Waits for a process that was sent `SIGSTOP`: returns true if it has stopped, false if it has
/// ended.
fn stops(process: Pid) -> bool {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        match stat.rsplit_once(") ").and_then(|(_, fields)| fields.chars().next()) {
            Some('T') => return true,
            None | Some('Z' | 'X') => return false,
            _ => yield_now(),
        }
    }
}

#[test]
fn a_sweep_that_was_interrupted_or_killed_goes_on_and_comes_to_the_same() {
    let folder = Folder::new("sweep-resume");
    let file = folder.file("a.yaml", LINE);
    let [whole, int, killed] = ["whole", "int", "kill"].map(|name| folder.path(name));
    let arguments = |out| ["sweep", &file, "--over", "seed=1..40", "--jobs", "2", "--out", out];
    good(&axon(&arguments(&whole)));
    let all = [("int", &int, Signal::SIGINT), ("kill", &killed, Signal::SIGKILL)];
    for (name, out, signal) in all {
        let mut sweep = begun(&folder, &arguments(out), name);
        let second = axon(&arguments(out));
        let said = bad(&second, 2);
        assert!(said.ends_with("another sweep writes to it\n"), "{said}");
        kill(Pid::from_raw(sweep.id() as i32), signal).unwrap();
        let ended = sweep.wait().unwrap();
        if signal == Signal::SIGINT {
            assert_eq!(ended.code(), Some(130));
            let said = std::io::read_to_string(sweep.stderr.take().unwrap()).unwrap();
            assert!(said.contains("runs to go; the same command goes on with them\n"), "{said}");
            let rows = table(&folder, name).len();
            assert!((2..40).contains(&rows), "{rows} rows");
        }
        while !runs_of(&sweep).is_empty() {
            yield_now();
        }
        let inode = |run: usize| {
            std::fs::metadata(folder.0.join(format!("{name}/runs/{run:06}.json")))
                .map(|of| of.ino())
        };
        let before: Vec<_> = (1..=40).map(|run| inode(run).ok()).collect();
        let finished = before.iter().flatten().count();
        assert!((2..40).contains(&finished), "{finished} runs are finished");
        let output = axon(&arguments(out));
        assert!(good(&output).starts_with("a: 40 runs, 40 passed\n"), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains(&format!("{finished} of 40 runs are finished already in")), "{said}");
        for (run, before) in (1..).zip(before).filter(|(_, before)| before.is_some()) {
            assert_eq!(inode(run).ok(), before, "run {run} was written again");
        }
        assert!(files(&folder, name) == files(&folder, "whole"), "{name}");
    }
}

#[test]
fn a_run_that_fails_is_listed_and_the_others_are_kept() {
    let folder = Folder::new("sweep-failed");
    let file = folder.file("cut.yaml", CUT);
    let out = folder.path("out");
    let over = ["--over", "traffic.0.tcp.bytes=1KiB,1GB,2KiB", "--over", "seed=3"];
    let arguments = [&["sweep", &file, "--out", &out][..], &over].concat();
    let reason = "1 of 1 flows did not come to their end";
    for _ in 0..2 {
        // A second sweep runs nothing and gives the same answer.
        let output = axon(&arguments);
        let said = failed(&output);
        let line = format!("failed: traffic.0.tcp.bytes=1GB, seed=3: {reason}\n");
        assert!(said.ends_with(&line), "{said}");
        assert!(text(&output.stdout).starts_with("cut: 3 runs, 2 passed, 1 failed\n"));
    }
    let rows = table(&folder, "out");
    assert_eq!(column(&rows, "status"), ["passed", "failed", "passed"]);
    assert_eq!(column(&rows, "reason"), ["", reason, ""]);
    assert_eq!(column(&rows, "unfinished"), ["0", "1", "0"]);
    let lost = |row: &[(String, String)]| {
        let counts = row.iter().filter(|(name, _)| name.starts_with("losses."));
        counts.map(|(_, count)| count.parse::<u64>().unwrap()).sum::<u64>()
    };
    assert!(lost(&rows[1]) > 0, "{rows:?}");
    assert_eq!(lost(&rows[0]), 0, "what was not counted is zero, and not empty");
}

#[test]
fn a_run_that_is_killed_is_a_row_and_runs_again_the_next_time() {
    let folder = Folder::new("sweep-killed");
    let file = folder.file("a.yaml", LINE);
    let out = folder.path("out");
    let over = ["--over", "seed=1..40", "--over", "traffic.0.stop=1ms,2ms"];
    let arguments = [&["sweep", &file, "--jobs", "1", "--out", &out][..], &over].concat();
    let mut sweep = begun(&folder, &arguments, "out");
    // A run may end between being found and being killed; a stopped run does not.
    let run = loop {
        assert!(sweep.try_wait().unwrap().is_none(), "it ended by itself");
        let run = runs_of(&sweep).first().map(|run| Pid::from_raw(*run));
        if let Some(run) = run.filter(|run| kill(*run, Signal::SIGSTOP).is_ok() && stops(*run)) {
            break run;
        }
    };
    kill(run, Signal::SIGKILL).unwrap();
    assert_eq!(sweep.wait().unwrap().code(), Some(1));
    let rows = table(&folder, "out");
    assert_eq!(rows.len(), 80);
    let crashed: Vec<_> = rows.iter().filter(|row| cell(row, "status") == "crashed").collect();
    assert_eq!(crashed.len(), 1, "{rows:?}");
    assert_eq!(cell(crashed[0], "reason"), "it was ended by signal 9");
    assert_eq!(cell(crashed[0], "events"), "");
    let output = axon(&arguments);
    assert!(good(&output).starts_with("a: 80 runs, 80 passed\n"));
    assert!(text(&output.stderr).contains("79 of 80 runs are finished already"), "{output:?}");
}

#[test]
fn what_is_wrong_is_refused_before_anything_runs_and_all_at_once() {
    let folder = Folder::new("sweep-refused");
    let file = folder.file("a.yaml", LINE);
    let out = folder.path("out");
    let refused = |more: &[&str]| {
        let output = axon(&[&["sweep", &file, "--out", &out][..], more].concat());
        assert!(!folder.0.join("out").exists(), "{more:?} has made a folder");
        bad(&output, 2).to_owned()
    };
    let said = refused(&["--over", "lnks.rate=1Gbps,2Gbps"]);
    assert!(said.contains("a.yaml:1:1: lnks: unknown key `lnks`; expected one of name"), "{said}");
    assert!(said.ends_with(" (every run)\nnothing was run\n"), "{said}");
    let said = refused(&["--over", "links.rate=1Gbps,2Gbs,3Gbps", "--over", "hop_width=8,9"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].contains("a.yaml:1:1: hop_width: 9 is out of range; expected 4, 8"), "{said}");
    let which = "(links.rate=1Gbps, hop_width=9; links.rate=3Gbps, hop_width=9)";
    assert!(lines[0].ends_with(which), "{said}");
    assert!(lines[1].contains("a.yaml:3:15: links.rate: `2Gbs` cannot be read"), "{said}");
    let said = refused(&["--over", "traffic.1.udp.rate=1Mbps"]);
    assert!(said.contains("traffic: it is a list of 1 entry, without `1`; expected 0"), "{said}");
    let said = refused(&["--over", "router=ecmp,layered"]);
    assert!(said.contains("(router=layered)"), "{said}");
    let said = refused(&["--over", "router=nope"]);
    assert!(said.contains("`nope` does not fit; expected some of shortest_path, ecmp"), "{said}");
    let said = refused(&["--over", "seed=1..10", "--memory-max", "10KiB"]);
    assert!(said.contains("--memory-max 10.00 KiB: the sweep itself uses"), "{said}");
    assert!(refused(&[]).contains("--over <KEY=VALUES>"));
    let none = axon(&["sweep", &folder.path("none.yaml"), "--over", "seed=1,2"]);
    assert!(bad(&none, 2).contains("cannot be read"));
    let output = axon(&["sweep", &file, "--over", "seed=1", "--out", "-"]);
    assert!(bad(&output, 2).contains("expected a folder"));
}

#[test]
fn the_record_of_another_sweep_is_refused_by_name_unless_it_is_to_run_again() {
    let folder = Folder::new("sweep-other");
    let file = folder.file("a.yaml", LINE);
    let out = folder.path("out");
    let of = |more: &[&str]| axon(&[&["sweep", &file, "--out", &out][..], more].concat());
    good(&of(&["--over", "seed=1,2"]));
    let before = files(&folder, "out");
    let refused = |more: &[&str], right: &str| {
        let output = of(more);
        let said = bad(&output, 2);
        assert!(said.contains("it has the runs of another sweep: "), "{said}");
        assert!(
            said.contains(right) && said.ends_with("--again to run everything again\n"),
            "{said}"
        );
        assert!(files(&folder, "out") == before, "a refusal has changed something");
    };
    refused(&["--over", "seed=1..3"], "--over was seed=1,2, and is seed=1..3 now");
    let ten = ["--over", "seed=1,2", "--duration", "10ms"];
    refused(&ten, "--duration was left out, and is 10ms now");
    let reference = ["--over", "seed=1,2", "--dataplane", "reference"];
    refused(&reference, "--dataplane was software, and is reference now");
    folder.file("a.yaml", LINE.replace("3Mbps", "4Mbps"));
    refused(&["--over", "seed=1,2"], "the fabric file has changed");
    good(&of(&["--over", "seed=5,6,7", "--again"]));
    assert_eq!(column(&table(&folder, "out"), "seed"), ["5", "6", "7"]);
    std::fs::remove_file(folder.path("out/sweep.json")).unwrap();
    let output = of(&["--over", "seed=5,6,7"]);
    assert!(bad(&output, 2).contains("it is there, and no record of its sweep"), "{output:?}");
    good(&of(&["--over", "seed=1", "--again"]));
    assert_eq!(files(&folder, "out").len(), 4 + 1, "what another sweep has left is gone");
}

#[test]
fn a_file_that_the_fabric_file_names_is_a_part_of_the_sweep() {
    let folder = Folder::new("sweep-named");
    folder.file("links", "s1 s2\ns2 s3\n");
    let graph = "name: g\ntopology: {graph: {file: links, hosts_per_switch: 1}}\n";
    let file = folder.file("g.yaml", graph);
    let out = folder.path("out");
    let arguments = ["sweep", &file, "--over", "seed=1,2", "--out", &out];
    assert!(good(&axon(&arguments)).starts_with("g: 2 runs, 2 passed\n"));
    folder.file("links", "s1 s2\ns2 s3\ns3 s1\n");
    let output = axon(&arguments);
    let said = bad(&output, 2);
    assert!(said.contains("links, which the fabric file names, has changed"), "{said}");
}

#[test]
fn a_run_that_needs_more_than_its_share_has_all_of_the_memory_by_itself() {
    let folder = Folder::new("sweep-memory");
    let file = folder.file("a.yaml", "name: a\ntopology: {fat_tree: {k: 2}}\n");
    let limited = |jobs, most| {
        let out = folder.path(jobs);
        let limits = ["--jobs", jobs, "--memory-max", most, "--duration", "1ms", "--again"];
        let over = ["--over", "topology.fat_tree.k=2,12"];
        axon(&[&["sweep", &file, "--out", &out][..], &over, &limits].concat())
    };
    // The larger run needs some 77 MiB: less than the limit, more than a third of it.
    let output = limited("3", "200MiB");
    assert!(good(&output).starts_with("a: 2 runs, 2 passed\n"), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("1 run needs more memory than ") && said.contains("one at a time"),
        "{said}"
    );
    assert!(!text(&limited("1", "200MiB").stderr).contains("memory"));
    assert!(files(&folder, "1") == files(&folder, "3"));
    for jobs in ["1", "3"] {
        let output = limited(jobs, "80MiB");
        let said = failed(&output);
        let line = "stopped: topology.fat_tree.k=12: it needs more memory than --memory-max 80.00 \
                    MiB\n";
        assert!(said.ends_with(line), "{said}");
        let rows = table(&folder, jobs);
        assert_eq!(column(&rows, "status"), ["passed", "stopped"]);
        assert_eq!(column(&rows, "events")[1], "", "how far it came depends on the machine");
    }
}

#[test]
fn the_parquet_file_has_what_the_csv_has() {
    let folder = Folder::new("sweep-parquet");
    let file = folder.file("cut.yaml", CUT);
    let out = folder.path("out");
    let over = ["--over", "traffic.0.tcp.bytes=1KiB,1GB", "--over", "faults.0.after_start=1ms,2ms"];
    let more = ["--over", "seed=1", "--over", "links.bit_error_rate=0,1e-12"];
    failed(&axon(&[&["sweep", &file, "--out", &out][..], &over, &more].concat()));
    let rows = table(&folder, "out");
    let parquet = File::open(folder.path("out/runs.parquet")).unwrap();
    let reader = SerializedFileReader::new(parquet).unwrap();
    let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let names: Vec<&str> = rows[0].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(fields.iter().map(|field| field.name()).collect::<Vec<_>>(), names);
    let kind =
        |name: &str| fields.iter().find(|field| field.name() == name).unwrap().get_physical_type();
    assert_eq!(kind("seed"), Physical::INT64);
    assert_eq!(kind("links.bit_error_rate"), Physical::DOUBLE);
    assert_eq!(kind("traffic.0.tcp.bytes"), Physical::BYTE_ARRAY);
    assert_eq!(kind("traffic.tcp1.received_bytes"), Physical::INT64);
    assert_eq!(kind("traffic.tcp1.lost_packets"), Physical::INT64, "empty in every run");
    let mut empty = 0;
    let mut seen = 0;
    for (row, csv) in reader.get_row_iter(None).unwrap().zip(&rows) {
        for ((_, field), (name, text)) in row.unwrap().get_column_iter().zip(csv) {
            match field {
                Field::Null => {
                    assert_eq!(text, "", "{name}");
                    empty += 1;
                }
                Field::Long(number) => assert_eq!(*text, number.to_string(), "{name}"),
                Field::Double(number) => assert_eq!(text.parse(), Ok(*number), "{name}"),
                Field::Str(word) => assert_eq!(text, word, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 8);
    assert!(empty > 0, "there are empty cells");
    read_by_pyarrow(&folder);
}

/// Reads the file with pyarrow, another implementation: same columns, types and cells.
fn read_by_pyarrow(folder: &Folder) {
    const READ: &str = "
import csv, sys
import pyarrow.parquet
table = pyarrow.parquet.read_table(sys.argv[1])
kinds = {str(field.type) for field in table.schema}
assert kinds == {'int64', 'double', 'string'}, kinds
rows = list(csv.DictReader(open(sys.argv[2], newline='')))
assert table.column_names == list(rows[0])
assert len(rows) == table.num_rows
for name in table.column_names:
    for cell, row in zip(table[name].to_pylist(), rows):
        text = row[name]
        same = text == '' if cell is None else type(cell)(text) == cell
        assert same, (name, cell, text)
print(table.num_rows, 'rows')
";
    let python = std::env::var_os("AXON_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", "import pyarrow"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return needs::skip("no pyarrow: the Python of `make python` has it, in AXON_PYTHON");
    }
    let files = [folder.path("out/runs.parquet"), folder.path("out/runs.csv")];
    let output = Command::new(&python).args(["-c", READ]).args(files).output().unwrap();
    assert_eq!(good(&output), "8 rows\n");
}

#[test]
fn a_table_that_cannot_be_written_is_named_and_the_others_are_written() {
    let folder = Folder::new("sweep-unwritten");
    let file = folder.file("a.yaml", LINE);
    let out = folder.path("out");
    let arguments = ["sweep", &file, "--over", "seed=1,2", "--out", &out];
    good(&axon(&arguments));
    std::fs::remove_file(folder.path("out/runs.csv")).unwrap();
    std::fs::create_dir_all(folder.path("out/runs.csv/x")).unwrap();
    std::fs::remove_file(folder.path("out/runs.parquet")).unwrap();
    let output = axon(&arguments);
    let said = incomplete(&output);
    assert!(said.contains("cannot write") && said.contains("runs.csv"), "{said}");
    assert!(folder.0.join("out/runs.parquet").exists());
}

#[test]
fn the_fabric_file_may_be_standard_input() {
    let folder = Folder::new("sweep-input");
    let file = File::open(scenario("line3")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_axon"))
        .args(["sweep", "-", "--over", "seed=1,2", "--out", &folder.path("out")])
        .stdin(file)
        .output()
        .unwrap();
    assert!(good(&output).starts_with("line3: 2 runs, 2 passed\n"), "{output:?}");
    let output = axon(&["sweep", "--help"]);
    assert!(good(&output).contains("a range of whole numbers with both ends, 1..100"));
}
