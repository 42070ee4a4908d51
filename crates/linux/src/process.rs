//! Runs a node as a process: builds a runtime from a node and its ports, and runs it until it is
//! stopped.

use crate::clock::Clock;
use crate::dataplane_choice::DataplaneChoice;
use crate::device_port::PortSetup;
use crate::inspect::Inspect;
use crate::kernel::ports::KernelPorts;
use crate::machine::Machine;
use crate::record::{Identity, RecordOptions, RecordSetup};
use crate::run::{RunOptions, Runtime};
use crate::store::Store;
use anyhow::{Context, Result, bail};
use axon_capture::pcap::CaptureOptions;
use axon_wire::Time;
use std::path::PathBuf;

/// Options for a daemon, in addition to its fabric and its name.
#[derive(Clone, Debug, Default)]
pub struct DaemonOptions {
    /// Socket that answers `status` requests, if any.
    pub status_socket: Option<PathBuf>,
    /// Capture of the frames at the ports.
    pub capture: Option<CaptureOptions>,
    /// File for the node's last incarnation number, if any. With it, neighbours accept the node
    /// after its clock was set back. A controller has its store in the same folder, in a file whose
    /// name ends in `.store`.
    pub state: Option<PathBuf>,
    /// Recording of all inputs to the node.
    pub record: Option<RecordOptions>,
    /// Switch ports, such as `s1-p4`, that are TAP devices. They are created if they are missing.
    pub taps: Vec<String>,
    /// Support of this machine for the kernel's data planes.
    pub machine: Machine,
    /// Folder in a BPF file system for the programs and tables of a switch whose frames the kernel
    /// carries. `None` selects a folder below the usual mount point.
    pub pins: Option<PathBuf>,
}

/// Runs `node` on these ports until SIGTERM or SIGINT. Without an identity, it is not recorded.
/// State for its next incarnation is written to `store`.
///
/// # Errors
/// There is no permission for packet sockets. Also as [`Runtime::open`].
pub(crate) fn run<N: Inspect>(
    node: N,
    clock: Clock,
    (name, identity): (&str, Option<Identity>),
    (ports, store): (Vec<PortSetup>, Option<Store>),
    dataplane: Option<(DataplaneChoice, Option<KernelPorts>)>,
    options: &DaemonOptions,
) -> Result<()> {
    // Without permission for packet sockets, every port would silently be down.
    if let Err(error) = crate::sys::packet_socket() {
        bail!("{name} cannot open packet sockets ({error}); it needs CAP_NET_RAW");
    }
    // Without permission, links may be slower than configured on a busy machine, which the counter
    // `late` in the status shows.
    if let Err(error) = crate::sys::prefer_this_process() {
        tracing::info!(node = name, %error, "does not run before all others");
    }
    let record = options.record.as_ref().zip(identity.as_ref());
    let record = record.map(|(record, identity)| {
        let devices = ports.iter().map(|port| port.device.clone()).collect();
        RecordSetup::new(record, identity, name, devices, clock.unix_nanos(Time::ZERO))
    });
    let (dataplane, kernel) = dataplane.unzip();
    let options = RunOptions {
        kernel: kernel.flatten(),
        name: name.into(),
        ports,
        status_socket: options.status_socket.clone(),
        capture: options.capture.clone(),
        record: record.transpose()?,
    };
    let mut runtime =
        Runtime::open(node, clock, options).with_context(|| format!("cannot start {name}"))?;
    store.into_iter().for_each(|store| runtime.keep_in(store));
    dataplane.into_iter().for_each(|choice| runtime.report(choice));
    tracing::info!(node = name, "running");
    runtime.run().with_context(|| format!("{name} ended"))
}
