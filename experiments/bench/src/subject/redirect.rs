//! Bare redirect: the program `tc_redirect` from ebpf/bench.bpf.c at the ingress of each port.

use anyhow::{Context, Result, bail};
use aya::programs::{SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};

static BARE: &[u8] = aya::include_bytes_aligned!("../../../../ebpf/built/bench.o");
const PROGRAM: &str = "tc_redirect";
/// Variable with the index of the target device.
const TARGET: &str = "IFINDEX";

/// Program that stays attached until it is dropped.
pub struct Program(#[expect(dead_code, reason = "it is attached until it is dropped")] Ebpf);

/// Redirects frames from each of two ports to the other port, in the namespace of the calling
/// thread.
///
/// # Errors
/// There are not exactly two ports, or the kernel refuses the program.
pub(crate) fn both_ways(ports: &[String]) -> Result<[Program; 2]> {
    let [a, b] = ports else { bail!("a redirect joins two ports, not {}", ports.len()) };
    Ok([redirect(a, b)?, redirect(b, a)?])
}

fn redirect(from: &str, to: &str) -> Result<Program> {
    let index = nix::net::if_::if_nametoindex(to).with_context(|| format!("no device {to}"))?;
    let mut ebpf = EbpfLoader::new().override_global(TARGET, &index, true).load(BARE)?;
    let program = ebpf.program_mut(PROGRAM).context("the object has no such program")?;
    let program: &mut SchedClassifier = program.try_into()?;
    program.load()?;
    program.attach(from, TcAttachType::Ingress)?;
    Ok(Program(ebpf))
}
