//! Tests of Python programs that fail, in every callback and in every way.

use crate::needs;
use crate::rig::{KNOWN, MODES, Mode, OTHER, Rig, site};
use axon_external::{Interpreter, Limits, Sink, StartError};
use axon_node::Drop;
use axon_wire::PortNo;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Program that does `FAULT` in `PLACE`.
const PROGRAM: &str = r#"
import os, sys, time
import axon

def fault(place):
    if place == PLACE:
        exec(FAULT)

fault("load")

class Fabric(axon.Program):
    def __init__(self):
        fault("__init__")

    def start(self):
        with self.switch.transaction() as t:
            t.set_mac("02:00:00:00:00:09", axon.Action.port(1))
            t.set_miss(axon.Action.cpu())
        self.links = 0
        fault("start")

    def link(self, port, up):
        fault("link")
        self.links += up
        if self.links == len(self.site.ports):
            self.deadline_ns = self.now_ns + 1_000_000

    def receive_packet(self, port, frame):
        fault("receive_packet")
        self.switch.send_packet(1, frame)

    def timeout(self):
        fault("timeout")
        addresses = bytes.fromhex("020000000011" "020000000001")
        self.switch.send_packet(1, addresses + b"\x88\xb5" + bytes(46))
"#;

const PLACES: [&str; 6] = ["load", "__init__", "start", "link", "receive_packet", "timeout"];

/// Faults, each with a part of its error message.
const FAULTS: [(&str, &str); 7] = [
    ("raise ValueError('no such luck')", "ValueError: no such luck"),
    ("raise ConnectionRefusedError('of its own')", "ConnectionRefusedError: of its own"),
    ("hoard = bytearray(3 << 30)", "MemoryError"),
    ("sys.exit(3)", "SystemExit: 3"),
    ("os._exit(3)", "it ended: exit status: 3"),
    ("time.sleep(1000)", "it did not answer within"),
    ("while True: pass", "it did not answer within"),
];

/// Returns a Python interpreter that has the module. Otherwise, prints that there is none and
/// returns `None`.
pub fn interpreter() -> Option<Interpreter> {
    match Interpreter::find() {
        Ok(interpreter) => Some(interpreter),
        Err(error) => {
            needs::skip(&error.to_string());
            None
        }
    }
}

/// Returns a sink that discards the output of a program.
fn silent() -> Sink {
    Arc::new(|_| ())
}

/// Returns a file that only one test uses.
fn file(name: &str, text: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("axon-external-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}.py"));
    std::fs::write(&path, text).unwrap();
    path
}

fn program(place: &str, fault: &str, name: &str) -> PathBuf {
    file(name, &format!("PLACE = {place:?}\nFAULT = {fault:?}\n{PROGRAM}"))
}

fn rig(interpreter: &Interpreter, mode: Mode, file: &std::path::Path) -> Rig {
    Rig::new(match mode {
        Mode::Waiting => interpreter.start_waiting(file, &site()),
        Mode::Queued => interpreter.start_queued(file, &site(), silent()).unwrap(),
    })
}

/// Drives a switch so that every callback of its program is called.
fn drive(rig: &mut Rig) {
    rig.wait("the start", |rig| rig.node.program().is_ready());
    rig.links_up();
    rig.receive(OTHER);
}

#[test]
fn a_program_in_python_runs_in_both_modes() {
    let Some(interpreter) = interpreter() else { return };
    let path = program("nowhere", "", "sound");
    for mode in MODES {
        let mut rig = rig(&interpreter, mode, &path);
        drive(&mut rig);
        rig.wait("the packet and the timeout", |rig| rig.left.len() == 2);
        rig.receive(KNOWN);
        assert_eq!(rig.left.len(), 3, "{mode:?}");
        assert!(rig.left.iter().all(|(port, _)| *port == PortNo(1)));
        assert_eq!(rig.failure(), None);
        assert_eq!(rig.dropped(Drop::NoProgram), 0);
    }
}

/// Runs one faulty program. Its switch must report the fault, keep its tables, and count the
/// failure.
fn check(interpreter: &Interpreter, mode: Mode, place: &str, fault: usize) {
    let (what, expected) = FAULTS[fault];
    let case = format!("{mode:?}, {place}, {what}");
    let path = program(place, what, &format!("{mode:?}-{place}-{fault}"));
    // Only a program that hangs gets a short limit, because others need time on a busy machine.
    let limit = if expected.contains("answer") { 2 } else { 60 };
    let limit = Duration::from_secs(limit);
    let limits = match place {
        "load" | "__init__" => Limits { load: limit, ..Limits::default() },
        _ => Limits { call: limit, ..Limits::default() },
    };
    let mut rig = rig(&interpreter.clone().with_limits(limits), mode, &path);
    drive(&mut rig);
    rig.wait(&case, |rig| rig.failure().is_some());
    let failure = rig.failure().unwrap();
    assert!(failure.contains(expected), "{case}: {failure}");
    assert_eq!(rig.node.program().deadline(), None, "{case}");
    let (left, no_program) = (rig.left.len(), rig.dropped(Drop::NoProgram));
    rig.receive(KNOWN);
    rig.receive(OTHER);
    let has_tables = !matches!(place, "load" | "__init__");
    assert_eq!(rig.left.len() - left, usize::from(has_tables), "{case}: by its tables");
    let counted = rig.dropped(Drop::NoProgram) - no_program;
    assert_eq!(counted, u64::from(has_tables), "{case}: dropped and counted");
}

#[test]
fn a_program_that_raises_hangs_or_exits_in_any_callback_leaves_its_tables_and_is_counted() {
    let Some(interpreter) = interpreter() else { return };
    let interpreter = &interpreter;
    std::thread::scope(|scope| {
        for mode in MODES {
            for place in PLACES {
                scope.spawn(move || {
                    (0..FAULTS.len()).for_each(|fault| check(interpreter, mode, place, fault));
                });
            }
        }
    });
}

#[test]
fn what_a_program_for_real_ports_prints_comes_line_by_line() {
    let Some(interpreter) = interpreter() else { return };
    let fault = "print('one'); sys.stderr.write('two\\n'); raise ValueError('three')";
    let path = program("start", fault, "prints");
    let (send, receive) = mpsc::channel();
    let sink: Sink = Arc::new(move |line: &str| send.send(line.to_owned()).unwrap());
    let mut rig = Rig::new(interpreter.start_queued(&path, &site(), sink).unwrap());
    rig.wait("the end", |rig| rig.failure().is_some());
    // The sender is dropped with the process, which alone holds the other end.
    let lines: Vec<String> = receive.iter().collect();
    assert_eq!(lines[..3], ["one", "two", "axon: the program of s1 has ended:"]);
    assert_eq!(lines.last().unwrap(), "ValueError: three");
}

#[test]
fn a_refused_commit_raises_in_the_callback_with_its_parts() {
    let Some(interpreter) = interpreter() else { return };
    let text = r#"
import axon

class Fabric(axon.Program):
    def start(self):
        try:
            with self.switch.transaction() as t:
                t.set_mac("02:00:00:00:00:09", axon.Action.port(1))
                t.set_mac("02:00:00:00:00:0a", axon.Action.interface(7))
        except axon.ChangeError as error:
            raise RuntimeError(f"{error.position}|{error.entry}|{error.reason}") from None
"#;
    for mode in MODES {
        let mut rig = rig(&interpreter, mode, &file("refused", text));
        rig.wait("the end", |rig| rig.failure().is_some());
        let expected = "RuntimeError: 2|mac 02:00:00:00:00:0a bridge 0|there is no interface 7";
        assert_eq!(rig.failure().as_deref(), Some(expected), "{mode:?}");
        rig.links_up();
        rig.receive(KNOWN);
        assert_eq!(rig.left, [], "{mode:?}: none of the changes was made");
    }
}

#[test]
fn a_file_without_a_program_and_an_interpreter_without_the_module_are_named() {
    let Some(interpreter) = interpreter() else { return };
    let mut rig = rig(&interpreter, Mode::Waiting, &file("empty", "x = 1\n"));
    rig.wait("the end", |rig| rig.failure().is_some());
    assert!(rig.failure().unwrap().contains("has no class Fabric(axon.Program)"));
    let missing = interpreter.start_queued(&PathBuf::from("nowhere.py"), &site(), silent());
    assert!(matches!(missing, Err(StartError::NoFile(..))));
    let none = Interpreter::at("no-such-python".into()).unwrap_err();
    assert!(none.to_string().contains("AXON_PYTHON"), "{none}");
    let bare = file("bare", "");
    std::fs::write(&bare, "#!/bin/sh\necho \"No module named 'axon'\" >&2\nexit 1\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&bare, mode).unwrap();
    let bare = Interpreter::at(bare).unwrap_err().to_string();
    assert!(bare.contains("make python") && bare.contains("No module named 'axon'"), "{bare}");
}
