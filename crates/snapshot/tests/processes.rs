//! One process saves a value, others go on from it: what this program does as a test is to start
//! itself as these.

use axon_snapshot::{Heap, Snapshot, fix_addresses, save};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

#[global_allocator]
static HEAP: Heap = Heap;

/// The unit of such files: head, label and image begin at multiples of it.
const PAGE: usize = 1 << 16;

/// Something that is known by its code alone.
trait Step: Send {
    fn step(&mut self, by: u64) -> u64;
}

struct Adds(u64);
struct Counts(BTreeMap<u64, Vec<u8>>);

impl Step for Adds {
    fn step(&mut self, by: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(by);
        self.0
    }
}

impl Step for Counts {
    fn step(&mut self, by: u64) -> u64 {
        self.0.entry(by % 100).or_default().push(by as u8);
        if by.is_multiple_of(7) {
            self.0.remove(&(by % 50));
        }
        self.0.values().map(|all| all.len() as u64).sum()
    }
}

/// What a world is made of: trees, tables, code, text of the program, shared parts, large arrays.
struct Value {
    steps: Vec<Box<dyn Step>>,
    names: HashMap<String, &'static str>,
    function: fn(u64) -> u64,
    shared: (Arc<Vec<u32>>, Arc<Vec<u32>>),
    large: Vec<u64>,
    now: u64,
}

fn thrice(value: u64) -> u64 {
    value.wrapping_mul(3)
}

impl Value {
    fn new() -> Box<Value> {
        let steps: [Box<dyn Step>; 2] = [Box::new(Adds(1)), Box::new(Counts(BTreeMap::new()))];
        let shared = Arc::new((0..1000).collect::<Vec<_>>());
        Box::new(Value {
            steps: steps.into(),
            names: (0..500).map(|name| (name.to_string(), "text of the program")).collect(),
            function: thrice,
            shared: (shared.clone(), shared),
            large: vec![0; 1 << 20],
            now: 0,
        })
    }

    /// Goes on by so many steps; returns a hash of what there is then.
    fn run(&mut self, steps: u64) -> u64 {
        let mut hash = 0_u64;
        for _ in 0..steps {
            self.now += 1;
            for step in &mut self.steps {
                hash = (self.function)(hash) ^ step.step(self.now);
            }
            let place = self.now as usize * 769 % self.large.len();
            self.large[place] += hash;
            self.names.insert((self.now % 700).to_string(), "more text");
        }
        assert!(Arc::ptr_eq(&self.shared.0, &self.shared.1));
        let text: usize = self.names.values().map(|text| text.len()).sum();
        hash ^ self.large.iter().fold(0, |all, one| all ^ one.rotate_left(7)) ^ text as u64
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["save", path] => {
            fix_addresses().expect("addresses");
            Heap::collect().expect("a region");
            assert!(Heap::collect().is_err(), "twice");
            let mut value = Value::new();
            value.run(1000);
            std::thread::scope(|scope| {
                let side = |_| scope.spawn(|| (0..2000).map(|n| vec![n; n].len()).sum::<usize>());
                (0..3).map(side).for_each(|thread| assert!(thread.join().is_ok()));
            });
            save(value, b"a label", &mut File::create(path).expect("a file")).expect("saved");
        }
        ["go-on", path, steps] => {
            fix_addresses().expect("addresses");
            let before: Vec<String> = (0..100).map(|n| n.to_string()).collect();
            let snapshot = Snapshot::open(Path::new(path)).expect("a snapshot");
            assert_eq!(snapshot.label(), b"a label");
            let mut value = snapshot.restore::<Value>().expect("a value");
            println!("{:x}", value.run(steps.parse().expect("a number")));
            drop(value);
            assert_eq!(before.len(), 100);
        }
        ["refuse", path] => {
            fix_addresses().expect("addresses");
            let opened = Snapshot::open(Path::new(path)).and_then(Snapshot::restore::<Value>);
            println!("{}", opened.err().expect("refused"));
        }
        ["other-type", path] => {
            fix_addresses().expect("addresses");
            let opened = Snapshot::open(Path::new(path)).and_then(Snapshot::restore::<u64>);
            println!("{}", opened.expect_err("refused"));
        }
        ["not-collected", path] => {
            let mut file = File::create(path).expect("a file");
            println!("{}", save(Box::new(1), b"", &mut file).expect_err("refused"));
        }
        _ => tests(),
    }
}

/// Starts this program again; what it prints.
fn again(arguments: &[&str]) -> String {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).args(arguments).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

fn tests() {
    let path = std::env::temp_dir().join(format!("axon-snapshot-{}", std::process::id()));
    let name = path.to_str().expect("a name").to_owned();
    let remove = Remove(path.clone());
    assert!(again(&["not-collected", &name]).contains("collected"));
    again(&["save", &name]);

    let mut whole = Value::new();
    whole.run(1000);
    let wanted = format!("{:x}", whole.run(500));
    let image = std::fs::read(&path).expect("a file");
    for _ in 0..2 {
        assert_eq!(again(&["go-on", &name, "500"]), wanted, "as if nothing had happened");
    }
    assert!(std::fs::read(&path).expect("a file") == image, "nobody wrote to it");
    assert_ne!(again(&["go-on", &name, "501"]), wanted);

    assert_eq!(again(&["other-type", &name]), "it holds something else");
    for at in [100, PAGE + 4, 2 * PAGE + 900, image.len() - 5000] {
        let mut other = image.clone();
        other[at] ^= 4;
        std::fs::write(&path, &other).expect("a file");
        // The rest of the head's page means nothing.
        if at > 96 && at < PAGE {
            assert_eq!(again(&["go-on", &name, "500"]), wanted);
        } else {
            assert!(again(&["refuse", &name]).contains("damaged"), "{at}");
        }
    }
    std::fs::write(&path, &image[..image.len() - PAGE]).expect("a file");
    assert!(again(&["refuse", &name]).contains("damaged"), "cut");
    drop(remove);
    println!("snapshots: all held");
}

/// Removes a file in the end.
struct Remove(PathBuf);

impl Drop for Remove {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}
