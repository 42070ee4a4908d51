//! Fabrics in Python: writes the files of `docs/your-own-fabric.md` and runs its commands.

use crate::common::{Folder, good, root, text};
use crate::needs;
use axon_external::Interpreter;
use std::process::{Command, Output};

/// Returns a Python with the module, or prints that there is none and returns `None`.
fn interpreter() -> Option<Interpreter> {
    Interpreter::find().map_err(|error| needs::skip(&error.to_string())).ok()
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/your-own-fabric.md")).unwrap()
}

/// Returns the code blocks of a page in one language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    page.split(&begin[..]).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

/// A folder with the files of the page.
struct User {
    folder: Folder,
    python: Interpreter,
}

impl User {
    fn new(name: &str) -> Option<User> {
        let python = interpreter()?;
        let folder = Folder::new(&format!("own-{name}"));
        let page = page();
        let files = [blocks(&page, "python"), blocks(&page, "yaml")].concat();
        for block in files {
            let file = block.lines().next().unwrap().trim_start_matches("# ");
            folder.file(file, block);
        }
        std::fs::create_dir_all(folder.0.join("scenarios")).unwrap();
        for file in ["scenarios/own_fabric.py", "scenarios/own-fabric.yaml"] {
            std::fs::copy(root().join(file), folder.0.join(file)).unwrap();
        }
        Some(User { folder, python })
    }

    fn run(&self, line: &str) -> Output {
        let mut words = line.split(' ');
        let mut command = match words.next() {
            Some("axon") => Command::new(env!("CARGO_BIN_EXE_axon")),
            Some("python3") => Command::new(self.python.path()),
            other => panic!("{other:?} is no command of the page"),
        };
        command.env("AXON_STATE_DIR", self.folder.0.join("state")).env_remove("XDG_RUNTIME_DIR");
        command.args(words).current_dir(&self.folder.0).output().unwrap()
    }
}

/// Returns the commands of the page: those of labs, or the others.
fn commands(of_labs: bool) -> Vec<String> {
    let page = page();
    let lines = blocks(&page, "sh").join("\n");
    let is_of_lab = |line: &&str| {
        ["axon up", "axon exec", "axon link", "axon down"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let chosen = lines.lines().filter(|line| is_of_lab(line) == of_labs);
    chosen.map(str::to_owned).collect()
}

#[test]
fn every_command_of_the_page_works() {
    let Some(user) = User::new("page") else { return };
    let mut printed = Vec::new();
    for line in commands(false) {
        let output = user.run(&line);
        assert_eq!(text(&output.stderr), "", "{line}");
        printed.push(good(&output).to_owned());
    }
    let [switch, line, own, _] = &printed[..] else { panic!("{printed:?}") };
    assert!(switch.contains("left by port 2: 00 1f 29 d4 17 e8"), "{switch}");
    assert!(switch.contains("<Entry tcam 7: 1 frames, 60 bytes>"), "{switch}");
    assert!(line.contains("30 of 30"), "{line}");
    assert_eq!(own.matches("56 of 56").count(), 2, "before and after the link failed: {own}");
}

#[test]
fn the_same_seed_gives_the_same_trace_and_the_switches_name_their_drops() {
    let Some(user) = User::new("hash") else { return };
    let json = |seed: &str, name: &str| {
        let line = format!("axon sim scenarios/own-fabric.yaml --seed {seed} --json {name}");
        good(&user.run(&line));
        let report: serde_json::Value = serde_json::from_str(&user.folder.read(name)).unwrap();
        (report["trace_hash"].as_str().unwrap().to_owned(), report["events"].as_u64())
    };
    let one = json("3", "one.json");
    assert_eq!(json("3", "two.json"), one);
}

#[test]
fn a_program_that_ends_is_named_and_its_packets_are_counted() {
    let Some(user) = User::new("ends") else { return };
    let program = user.folder.read("line.py");
    let broken =
        program.replace("        answer =", "        assert self.site.node != 1\n        answer =");
    user.folder.file("line.py", broken);
    let output = user.run("axon sim line.yaml --json report.json");
    assert!(!output.status.success(), "{output:?}");
    let errors = text(&output.stderr);
    assert!(errors.contains("the program of s2 has ended: AssertionError"), "{errors}");
    assert!(errors.contains("line.py\", line"), "its traceback: {errors}");
    let report: serde_json::Value = serde_json::from_str(&user.folder.read("report.json")).unwrap();
    assert!(report["drops"]["no_program"].as_u64().unwrap() > 0, "{}", report["drops"]);
}

#[test]
fn a_program_that_is_late_ends_the_run_without_an_answer() {
    let Some(user) = User::new("late") else { return };
    let program = user.folder.read("line.py");
    let late = program.replace("        answer =", "        while True: pass\n        answer =");
    user.folder.file("line.py", late);
    let output = user.run("axon sim line.yaml");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = text(&output.stderr);
    assert!(errors.contains("line stopped: the program of s"), "{errors}");
    assert!(errors.contains("it did not answer within 10s"), "{errors}");
}

#[test]
fn the_commands_with_real_hosts_work() {
    if !needs::lab() {
        return;
    }
    let Some(user) = User::new("lab") else { return };
    for line in commands(true) {
        let output = user.run(&line);
        if !output.status.success() {
            user.run("axon down");
        }
        good(&output);
    }
}
