//! Helpers of the tests of labs.

use axon_lab::{Lab, StateDir};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) use crate::needs;
pub use crate::runner::{Test, part};

/// Directory of the state of this test's labs. Names beside it belong to the test, too.
pub fn state_root() -> PathBuf {
    PathBuf::from(std::env::var_os(axon_lab::STATE_VARIABLE).expect("the runner has set it"))
}

/// Ends all labs of this test; returns their names.
pub fn end_labs() -> Vec<String> {
    let names = StateDir::all().unwrap_or_default();
    for name in &names {
        if let Err(error) = axon_lab::down(Some(name)) {
            eprintln!("lab {name} does not end: {error:#}");
        }
    }
    names
}

/// Processes that this test has started, directly or through others, with their command lines.
/// Their environment names the state of its labs.
pub fn processes() -> Vec<(i32, Vec<u8>)> {
    let root = state_root();
    let own =
        [axon_lab::STATE_VARIABLE.as_bytes(), b"=", root.as_os_str().as_encoded_bytes()].concat();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let read = |pid: i32, file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    pids.filter(|&pid| read(pid, "environ").split(|byte| *byte == 0).any(|word| word == own))
        .map(|pid| (pid, read(pid, "cmdline")))
        .collect()
}

/// Process of a node's daemon in this test's lab.
pub fn daemon(node: &str) -> Option<i32> {
    let end = format!("\0node\0/run/lab\0{node}\0");
    let is_it = |(_, line): &(i32, Vec<u8>)| line.ends_with(end.as_bytes());
    processes().into_iter().find(is_it).map(|(pid, _)| pid)
}

/// A ping that runs until it is ended.
pub struct Pinging {
    child: Child,
    /// Lines of output so far.
    lines: Arc<AtomicUsize>,
    output: JoinHandle<Vec<String>>,
}

impl Pinging {
    /// Replies that arrive before the ping is ended.
    const LAST: usize = 20;

    /// Starts `ping` with these words, the last of which is the address.
    pub fn start(lab: &Lab, node: &str, words: &str) -> Pinging {
        // It ends with its input.
        let line = format!("ping {words} & read -r end; kill -INT $!; wait $!");
        let mut command = lab.command(node, &["sh", "-c", &line]).expect("a command");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        let lines = Arc::new(AtomicUsize::new(0));
        let count = lines.clone();
        let counted = move |line| {
            count.fetch_add(1, Ordering::Relaxed);
            line
        };
        // Read at once: a ping with a full pipe blocks.
        let read = || from.lines().map_while(Result::ok).map(counted).collect();
        Pinging { child, lines, output: std::thread::spawn(read) }
    }

    /// Ends the ping; returns its output. First, replies to requests sent after this call arrive,
    /// so all earlier losses show as a gap.
    pub fn end(mut self) -> String {
        let (before, began) = (self.lines.load(Ordering::Relaxed), Instant::now());
        while self.lines.load(Ordering::Relaxed) < before + Pinging::LAST {
            assert!(began.elapsed() < Duration::from_secs(60), "no reply comes any more");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
        self.output.join().expect("it does not panic").join("\n")
    }
}

/// Waits up to `limit` for a condition; returns whether it holds.
pub fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        let held = holds();
        if held || Instant::now() > end {
            return held;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sequence numbers of the replies in a ping's output, in order of arrival.
pub fn replies(output: &str) -> Vec<u32> {
    let number = |line: &str| line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse().ok();
    output.lines().filter_map(number).collect()
}

/// Runs a line of the shell in a node of a lab, which must succeed; returns its output.
pub fn shell(lab: &Lab, node: &str, line: &str) -> String {
    let mut command = lab.command(node, &["sh", "-c", line]).expect("a command");
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{node}: {line}\n{text}{errors}");
    text
}
