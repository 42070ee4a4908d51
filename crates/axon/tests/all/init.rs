//! First steps without a lab: a fabric file from a template, completions, manual pages.

use crate::common::{Folder, axon, bad, good, root, text};
use std::process::{Command, Output};

const TEMPLATES: [&str; 6] = ["line", "ring", "fat-tree", "torus", "leaf-spine", "lossless"];

/// Runs the binary in a folder.
fn within(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
    command.args(arguments).current_dir(&folder.0).output().unwrap()
}

/// Returns the commands that `axon --help` lists.
fn commands() -> Vec<String> {
    let help = axon(&["--help"]);
    let lines = good(&help).lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  "));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn every_template_is_proved_and_passes_its_simulation() {
    let folder = Folder::new("init-all");
    for template in TEMPLATES {
        let file = folder.path(&format!("{template}.yaml"));
        let written = axon(&["init", template, &file]);
        assert!(good(&written).contains(&format!("axon up {file} ")), "{written:?}");
        let checked = axon(&["check", &file]);
        assert!(good(&checked).starts_with(&format!("{template}: ")), "{checked:?}");
        let proved = axon(&["prove", &file]);
        good(&proved);
        if template == "lossless" {
            assert!(good(&proved).contains("proved lossless and free of deadlock"), "{proved:?}");
        }
        good(&axon(&["sim", &file]));
        assert_eq!(good(&axon(&["init", template, "-"])), folder.read(&format!("{template}.yaml")));
    }
    let help = axon(&["init", "--help"]);
    let all = |name: &&str| good(&help).contains(&format!("- {name}:"));
    assert!(TEMPLATES.iter().all(all), "{help:?}");
}

#[test]
fn the_lossless_template_is_also_proved_with_the_values_that_it_has_for_a_lab() {
    let folder = Folder::new("init-lab");
    let output = axon(&["init", "lossless", "-"]);
    let in_lab = |line: &str| match line.split_once("# lab: ") {
        Some((keys, value)) => format!("{}: {value}\n", keys.split(':').next().unwrap()),
        None => format!("{line}\n"),
    };
    let text: String = good(&output).lines().map(in_lab).collect();
    assert!(text.contains("\nlinks: { rate: 20Mbps }\n"), "{text}");
    let proved = axon(&["prove", &folder.file("a.yaml", text)]);
    assert!(good(&proved).contains("lossless: proved lossless and free of deadlock"), "{proved:?}");
}

/// The commented-out sections of a template are valid when uncommented.
#[test]
fn what_a_template_has_as_a_comment_works() {
    let folder = Folder::new("init-comments");
    for template in TEMPLATES {
        let output = axon(&["init", template, "-"]);
        let uncommented = |line: &str| {
            let keys = ["# traffic:", "# faults:", "#   - "];
            let is_key = keys.iter().any(|key| line.trim_start().starts_with(key));
            (if is_key { line.replacen("# ", "", 1) } else { line.to_owned() }) + "\n"
        };
        let text: String = good(&output).lines().map(uncommented).collect();
        assert!(text.contains("\ntraffic:\n  - {"), "{text}");
        let file = folder.file(&format!("{template}.yaml"), text);
        good(&axon(&["sim", &file, "--duration", "20s"]));
    }
}

#[test]
fn a_file_that_exists_is_never_overwritten() {
    let folder = Folder::new("init-twice");
    assert!(good(&within(&folder, &["init"])).starts_with("fabric.yaml is written"));
    let first = folder.read("fabric.yaml");
    assert!(first.contains("ring:"), "{first}");
    let again = within(&folder, &["init", "line"]);
    assert!(bad(&again, 2).contains("fabric.yaml exists, and is not overwritten"), "{again:?}");
    assert!(bad(&again, 2).contains("axon init line FILE"), "{again:?}");
    assert_eq!(folder.read("fabric.yaml"), first);
    let nowhere = within(&folder, &["init", "line", "no/such/a.yaml"]);
    assert!(bad(&nowhere, 2).contains("cannot write no/such/a.yaml"), "{nowhere:?}");
    let unknown = within(&folder, &["init", "moebius"]);
    assert!(bad(&unknown, 2).contains("leaf-spine"), "it names those there are: {unknown:?}");
}

#[test]
fn the_docs_list_every_command() {
    let docs = std::fs::read_to_string(root().join("docs/commands.md")).unwrap();
    let table = docs.split("## Exit status").next().unwrap();
    let listed: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `axon ")?.split([' ', '`']).next())
        .collect();
    let mut commands = commands();
    commands.retain(|name| name != "help");
    assert!(commands.len() > 20, "{commands:?}");
    assert_eq!(listed, commands, "in the order of `axon --help`");
}

#[test]
fn a_shell_completes_every_command() {
    let folder = Folder::new("init-completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = axon(&["completions", shell]);
        for name in commands() {
            assert!(good(&script).contains(&name), "{shell} does not complete {name}");
        }
    }
    let script = axon(&["completions", "bash"]);
    let file = folder.file("axon.bash", &script.stdout);
    let ask = format!(
        "source {file}; COMP_WORDS=(axon li); COMP_CWORD=1; _axon axon li axon; \
                       echo ${{COMPREPLY[@]}}"
    );
    let shell = Command::new("bash").args(["-c", &ask]).output().unwrap();
    assert_eq!(text(&shell.stdout), "link\n", "{shell:?}");
    assert!(bad(&axon(&["completions", "tcl"]), 2).contains("powershell"));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new("init-man");
    let into = folder.path("man/man1");
    let output = axon(&["man", &into]);
    let mut names: Vec<String> = commands();
    names.retain(|name| name != "help");
    assert_eq!(good(&output), format!("{} pages in {into}\n", names.len() + 1));
    let page = folder.read("man/man1/axon.1");
    assert!(page.starts_with(".ie") && page.contains("axon\\-link(1)"), "{page}");
    for name in names {
        let page = folder.read(&format!("man/man1/axon-{name}.1"));
        assert!(page.contains(&format!("\n.TH axon-{name} 1 ")), "{name}: {page}");
        assert!(page.contains(".SH \"EXIT STATUS\"\n"), "{name}: {page}");
    }
    let file = folder.file("file", "");
    assert!(bad(&axon(&["man", &file]), 2).starts_with(&format!("cannot make {file}")));
}
