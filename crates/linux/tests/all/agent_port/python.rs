//! Agents in Python at a real port: each call, agents that forge or end, the program of the page,
//! and an agent through which a live switch carries frames.

use super::support::{LIMIT, Switch, bytes, numbered, socket};
use crate::needs;
use axon_agents::packet::{Ends, udp};
use axon_external::Interpreter;
use axon_linux::agent_port::PayloadMode;
use axon_linux::agent_port::measure::throughput::{Arrival, Bench};
use axon_linux::port::Port;
use axon_wire::{FrameBuf, MacAddr, Span};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// The first byte of a frame selects the call.
const EVERY_CALL: &str = r#"
import sys
import axon

class Every(axon.Agent):
    def start(self):
        self.held = []

    def handle_packets(self, batch):
        for packet in batch:
            head = packet.head
            assert (len(head), packet.head_bytes) == (128, 128)
            what = head[0]
            if what == 0:
                head[1] = packet.frame_bytes & 0xff
                packet.forward()
            elif what == 1:
                packet.drop()
            elif what == 2:
                packet.fetch(300, 20)
            elif what == 3:
                packet.replace(b"another payload")
            elif what == 4:
                packet.resize_head(packet.head_bytes + 8)
                packet.head[:8] = b"a tunnel"
                packet.forward()
            elif what == 5:
                packet.resize_head(packet.head_bytes - 8)
                packet.forward()
            elif what == 6:
                self.held.append(packet)
                self.deadline_ns = self.now_ns + 1_000_000
            elif what == 7:
                packet.forward()
                try:
                    packet.forward()
                except axon.NotHeldError as error:
                    self.client.send(b"refused: " + str(error).encode())

    def handle_payload(self, payload):
        self.client.send(b"fetched: " + payload.data)
        payload.packet.drop()

    def handle_timeout(self):
        for packet in self.held:
            packet.forward()

try:
    axon.run_agent(Every(), sys.argv[1], "every")
except axon.SwitchGone:
    print("the switch is gone")
"#;

/// A program without the module that follows the layout and writes arbitrary values.
const FORGER: &str = r#"
import mmap, os, socket, struct, sys, time

stream = socket.socket(socket.AF_UNIX)
stream.connect(sys.argv[1])
stream.sendall(struct.pack("<8sII48s", b"AXONAGNT", 2, 6, b"forger"))
answer, fds, _, _ = socket.recv_fds(stream, 256, 3)
size, = struct.unpack_from("<Q", answer, 16)
memory = mmap.mmap(fds[0], size)
slots, = struct.unpack_from("<I", memory, 12)
to_agent, from_agent = struct.unpack_from("<2I", memory, 8 + 4 * 10)
tail = 0

def word(at):
    return struct.unpack_from("<I", memory, at)[0]

def answer(*descriptor):
    global tail
    struct.pack_into("<IIQIIII", memory, from_agent + tail % slots * 32, *descriptor)
    tail += 1
    struct.pack_into("<I", memory, 1280, tail)
    os.write(fds[2], struct.pack("<Q", 1))

while word(1024) < 2:
    time.sleep(0.001)
first, second = [struct.unpack_from("<IIQIIII", memory, to_agent + at) for at in (0, 32)]
struct.pack_into("<I", memory, 1152, 2)
chunk, handle = first[1], first[2]
for forged in (0, 7, handle + 65536, handle ^ 1, second[2], 2**64 - 1):
    answer(16, chunk, forged, 128, 4, 0, 0)
answer(16, chunk, handle, 128, 128, 0, 0)
answer(16, chunk, handle, 128, 128, 0, 0)
sys.stdin.read()
answer(16, 1 << 30, second[2], 128, 128, 0, 0)
try:
    assert stream.recv(1) == b"", "detached"
except ConnectionResetError:
    pass  # The switch only peeks at the hello: the end is a reset once the socket is closed, too.
print("detached")
"#;

const RAISES: &str = r#"
import sys
import axon

class Raises(axon.Agent):
    def handle_packets(self, batch):
        batch[0].forward()
        raise KeyError("of its own")

axon.run_agent(Raises(), sys.argv[1])
"#;

/// Returns a Python with the module, or prints that there is none and returns `None`.
fn interpreter() -> Option<Interpreter> {
    Interpreter::find().map_err(|error| needs::skip(&error.to_string())).ok()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A process of Python, ended with the test.
struct Agent(Child);

impl Agent {
    /// Runs a program, from a file or as text, with the path of a socket.
    fn start(python: &Interpreter, program: &[&str], socket: &Path) -> Agent {
        let mut command = Command::new(python.path());
        command.args(program).arg(socket).stdin(Stdio::piped());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Agent(child.expect("a process"))
    }

    /// Runs a program like `start`, and waits until it is attached.
    fn attach(switch: &mut Switch, python: &Interpreter, program: &[&str]) -> Agent {
        let mut agent = Agent::start(python, program, &switch.setup.socket);
        switch.until(|port| port.carrier() == Some(true) || agent.0.try_wait().unwrap().is_some());
        assert_eq!(switch.port.carrier(), Some(true), "{:?}", agent.ended());
        agent
    }

    /// Waits for its end; returns whether it succeeded, and its output.
    fn ended(&mut self) -> (bool, String, String) {
        let (mut printed, mut errors) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.0.wait().unwrap().success(), printed, errors)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port with a generous time limit, since Python may start late on a busy machine.
fn switch(mode: PayloadMode) -> Switch {
    Switch::with(|setup| (setup.payload, setup.hold_max) = (mode, None))
}

/// Returns the next frames from the agent.
fn take(switch: &mut Switch, count: usize) -> Vec<Vec<u8>> {
    let (began, mut frames) = (Instant::now(), Vec::new());
    while frames.len() < count {
        assert!(began.elapsed() < LIMIT, "{} of {count} frames came", frames.len());
        frames.extend(bytes(&switch.take()));
        std::thread::yield_now();
    }
    frames
}

pub fn an_agent_in_python_uses_every_call() {
    let Some(python) = interpreter() else { return };
    for mode in [PayloadMode::Cached, PayloadMode::Copied] {
        let mut switch = switch(mode);
        let mut agent = Agent::attach(&mut switch, &python, &["-c", EVERY_CALL]);
        let whole = |what| numbered(what, 700);
        let mut expect = |what: u8, expected: &[&[u8]]| {
            switch.give(&whole(what));
            assert_eq!(take(&mut switch, expected.len()), expected, "{mode:?} {what}");
        };
        let rewritten = [&[0, 700u32 as u8], &whole(0)[2..]].concat();
        expect(0, &[&rewritten]);
        expect(1, &[]);
        expect(2, &[&[b"fetched: ", &whole(2)[300..320]].concat()]);
        expect(3, &[&[&whole(3)[..128], b"another payload"].concat()]);
        expect(4, &[&[b"a tunnel", &whole(4)[..]].concat()]);
        expect(5, &[&whole(5)[8..]]);
        expect(6, &[&whole(6)]);
        switch.give(&whole(7));
        let frames = take(&mut switch, 2);
        assert_eq!(frames[0], whole(7));
        let refused = String::from_utf8_lossy(&frames[1]);
        assert!(refused.contains("decide once on each packet"), "{refused}");
        // All packets of one batch, and more than there are buffers.
        for _ in 0..2000 {
            if switch.port.room() == 0 {
                take(&mut switch, 1);
            }
            switch.give(&whole(0));
        }
        let counters = switch.until_counted(|counters| counters.forwarded >= 2006);
        assert_eq!((counters.dropped, counters.replaced, counters.sent), (2, 1, 2), "{mode:?}");
        assert_eq!((counters.answers_refused, counters.broken, counters.lost), (0, 0, 0));
        drop(switch);
        assert_eq!(agent.ended(), (true, "the switch is gone\n".into(), String::new()));
    }
}

pub fn a_forger_gets_nothing_of_what_it_was_not_given_and_is_detached_for_what_cannot_be() {
    let Some(python) = interpreter() else { return };
    let mut switch = switch(PayloadMode::Cached);
    let mut agent = Agent::attach(&mut switch, &python, &["-c", FORGER]);
    switch.give(&numbered(1, 500));
    switch.give(&numbered(2, 500));
    assert_eq!(take(&mut switch, 1), [numbered(1, 500)]);
    // Six forged answers, and one repeated answer.
    let counters = switch.until_counted(|counters| counters.answers_refused >= 7);
    assert_eq!((counters.answers_refused, counters.forwarded, counters.broken), (7, 1, 0));
    drop(agent.0.stdin.take());
    let frames = switch.until(|port| port.carrier() == Some(false));
    assert_eq!(bytes(&frames), Vec::<Vec<u8>>::new());
    let counters = switch.port.agent_status().counters;
    assert_eq!((counters.broken, counters.lost), (1, 1));
    assert_eq!(agent.ended(), (true, "detached\n".into(), String::new()));
    // The next agent works.
    let _next = Agent::attach(&mut switch, &python, &["-c", EVERY_CALL]);
    switch.give(&numbered(6, 500));
    assert_eq!(take(&mut switch, 1), [numbered(6, 500)]);
}

pub fn an_agent_that_raises_ends_with_its_traceback_and_its_packets_are_counted() {
    let Some(python) = interpreter() else { return };
    let mut switch = switch(PayloadMode::Cached);
    let mut agent = Agent::attach(&mut switch, &python, &["-c", RAISES]);
    let mut two = vec![FrameBuf::new(&numbered(1, 500)), FrameBuf::new(&numbered(2, 500))];
    switch.port.transmit(&mut two).unwrap();
    let frames = switch.until(|port| port.carrier() == Some(false));
    assert_eq!(bytes(&frames), [numbered(1, 500)], "what it had decided stands");
    assert_eq!(switch.port.agent_status().counters.lost, 1);
    let (good, _, errors) = agent.ended();
    assert!(!good && errors.contains("KeyError: 'of its own'"), "{errors}");
}

pub fn the_program_of_the_page_does_what_it_says() {
    let Some(python) = interpreter() else { return };
    let page = std::fs::read_to_string(root().join("docs/your-own-agent.md")).unwrap();
    let program = page.split("```python\n").nth(1).unwrap().split("\n```").next().unwrap();
    let mut switch = switch(PayloadMode::Cached);
    let _agent = Agent::attach(&mut switch, &python, &["-c", program]);
    let ends = Ends {
        macs: (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])),
        addresses: ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
        ports: (4000, 9),
    };
    let discarded = udp(&ends, &[b"nobody reads this"]);
    let answered = udp(&ends.reversed(), &[b"but this"]);
    let mut other = discarded.clone();
    other[12] = 0x86;
    for frame in [&discarded, &answered, &other, &discarded] {
        switch.give(frame);
    }
    assert_eq!(take(&mut switch, 2), [answered, other]);
    let counters = switch.until_counted(|counters| counters.dropped >= 2);
    assert_eq!((counters.dropped, counters.forwarded), (2, 2));
}

pub fn a_live_switch_carries_frames_through_an_agent_in_python() {
    let Some(python) = interpreter() else { return };
    for mode in [PayloadMode::Cached, PayloadMode::Copied] {
        let socket = socket();
        let mut bench = Bench::new(&socket, mode, Arrival::Socket, 1500).unwrap();
        let program = root().join("crates/py/examples/rewriter.py");
        let mut agent = Agent::start(&python, &[program.to_str().unwrap()], &socket);
        bench.wait().unwrap();
        // The bench compares the frames that leave.
        while bench.counters().forwarded < 10_000 {
            bench.turn(Span::from_millis(50)).unwrap();
        }
        assert_eq!(bench.counters().answers_refused, 0);
        drop(bench);
        let (good, printed, errors) = agent.ended();
        assert!(good && errors.is_empty(), "{errors}");
        assert!(printed.contains("has ended the attachment"), "{printed}");
    }
}
