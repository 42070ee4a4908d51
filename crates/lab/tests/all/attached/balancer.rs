//! The balancer of scenarios/agent-balancer.yaml among real web servers and clients.

use super::{agent, agent_process, down, kill, output, scenario, until, up};
use crate::support::needs;
use axon_lab::Lab;
use axon_linux::attach;
use std::process::{Child, Stdio};

/// Address of the service.
const URL: &str = "http://10.0.200.1/";
/// A download in bytes: many windows of TCP.
const LONG_BYTES: usize = 8 << 20;
/// Program that answers with the name of its host, or with the number of bytes in the path.
const SERVER: &str = "
import http.server, socket
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        count = self.path[1:]
        body = b'x' * int(count) if count else socket.gethostname().encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(('0.0.0.0', 80), Handler).serve_forever()
";

/// Starts a web server on a host, which ends with the lab.
fn serve(lab: &Lab, host: &str) -> Child {
    let mut command = lab.command(host, &["python3", "-c", SERVER]).expect("a node");
    let server = command.stdin(Stdio::null()).spawn().expect("it starts");
    let tries = ["curl", "-s", "-f", "--retry", "100", "--retry-delay", "1", "--retry-connrefused"];
    output(lab, host, &[&tries[..], &["http://127.0.0.1/"]].concat());
    server
}

/// Returns the servers that have answered `count` requests, each on a connection of its own.
fn answers(lab: &Lab, client: &str, count: usize) -> Vec<String> {
    // After a switch or an agent has restarted, the first tries may fail.
    let curl = ["curl", "-s", "-f", "--retry", "60", "--retry-delay", "1", "--retry-all-errors"];
    let one = || output(lab, client, &[&curl[..], &["--connect-timeout", "10", URL]].concat());
    let mut servers: Vec<String> = (0..count).map(|_| one()).collect();
    servers.sort();
    servers.dedup();
    servers
}

/// Returns the process of a switch, by its number in the lab.
fn switch_process(lab: &Lab, switch: &str) -> i32 {
    let script = format!(
        "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | \
         grep -q 'lab-part node /run/lab {switch} $' && echo ${{p#/proc/}}; done; true"
    );
    let found = output(lab, switch, &["sh", "-c", &script]);
    found.trim().parse().unwrap_or_else(|_| panic!("one process of {switch}: {found:?}"))
}

pub fn spreads_and_comes_back() {
    if !needs::programs(&["curl", "python3"]) {
        return;
    }
    let lab = up(&scenario("agent-balancer"));
    let mut servers = ["h3", "h4"].map(|host| serve(&lab, host));
    assert_eq!(answers(&lab, "h1", 12), ["h3", "h4"], "both serve");
    assert_eq!(answers(&lab, "h2", 12), ["h3", "h4"]);
    let long = output(&lab, "h2", &["curl", "-s", "-f", &format!("{URL}{LONG_BYTES}")]);
    assert!(long.len() == LONG_BYTES && long.bytes().all(|byte| byte == b'x'));

    let before = agent(&lab);
    assert!(before.attached && before.restarts == 0, "{before:?}");
    let counters = before.counters.as_ref().expect("its process answers");
    let begun = counters.get("connections_opened").copied();
    println!("balancer: {counters:?}");
    assert!(begun.is_some_and(|count| count >= 25), "{counters:?}");

    // The agent is killed: another process replaces it, and new connections work.
    let first = agent_process(&lab).expect("it is attached");
    kill(&lab, first);
    until(&lab, "another process is attached", || {
        agent_process(&lab).is_some_and(|process| process != first)
    });
    assert_eq!(answers(&lab, "h1", 12), ["h3", "h4"], "after the agent was killed");
    assert_eq!(agent(&lab).restarts, 1);

    // The switch is killed: the agent keeps running, and is attached to the next one.
    let second = agent_process(&lab);
    kill(&lab, switch_process(&lab, "s1"));
    let own = lab.state().agent_status("vip");
    until(&lab, "the agent is attached again", || {
        attach::ask(&own).is_ok_and(|own| own.attached && own.attachments == 2)
    });
    assert_eq!(answers(&lab, "h2", 12), ["h3", "h4"], "after the switch was killed");
    assert_eq!((agent(&lab).restarts, agent_process(&lab)), (1, second));
    down(&lab);
    for server in &mut servers {
        server.wait().expect("it ends with the lab");
    }
}
