//! Programs, which are loaded with the constants of one port and attached to its device.

use super::error::KernelError;
use super::filter;
use super::settings::{Hook, KernelSettings};
use axon_wire::{HopWidth, PortNo};
use aya::maps::Map;
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{
    LinkOrder, Program, ProgramError, SchedClassifier, TcAttachType, TestRun, TestRunOptions, Xdp,
    XdpMode,
};
use aya::{Ebpf, EbpfLoader};
use std::io;
use std::path::Path;
use std::time::Duration;

static TC: &[u8] = aya::include_bytes_aligned!("../../../../ebpf/built/tc.o");
static XDP: &[u8] = aya::include_bytes_aligned!("../../../../ebpf/built/xdp.o");

/// Kind of attachment of a program to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attachment {
    /// At tc ingress, before other programs there.
    Tc,
    /// At tc ingress by a filter, for kernels without TCX links (before Linux 6.6).
    TcFilter,
    /// In the device driver (native XDP).
    XdpNative,
    /// Before the stack, if the driver has no XDP (generic XDP).
    XdpGeneric,
}

impl Attachment {
    /// All kinds.
    pub(super) const ALL: [Attachment; 4] =
        [Attachment::Tc, Attachment::TcFilter, Attachment::XdpNative, Attachment::XdpGeneric];

    /// Returns the name, as used in pin names.
    pub const fn name(self) -> &'static str {
        match self {
            Attachment::Tc => "tc",
            Attachment::TcFilter => "filter",
            Attachment::XdpNative => "native",
            Attachment::XdpGeneric => "generic",
        }
    }

    /// Returns the attachment with this name.
    pub(super) fn of_name(name: &str) -> Option<Attachment> {
        Attachment::ALL.into_iter().find(|attachment| attachment.name() == name)
    }
}

/// Returns the object file that contains the program for this data plane.
pub(super) const fn object(hook: Hook) -> &'static [u8] {
    match hook {
        Hook::Tc => TC,
        Hook::Xdp => XDP,
    }
}

const fn name(hook: Hook) -> &'static str {
    match hook {
        Hook::Tc => "axon_tc",
        Hook::Xdp => "axon_xdp",
    }
}

const fn tables(hook: Hook) -> &'static [&'static str] {
    match hook {
        Hook::Tc => &["ports", "routes", "traffic", "node"],
        Hook::Xdp => &["ports", "routes", "traffic", "links", "hosts", "version", "recent"],
    }
}

/// Program for one port in the kernel, attached or not. Dropping this value unloads it, unless it
/// is attached and pinned.
pub struct LoadedProgram {
    ebpf: Ebpf,
    hook: Hook,
}

/// Result of a test run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestRunOutcome {
    /// Verdict of the program.
    pub verdict: Verdict,
    /// Length of the resulting frame, in bytes.
    pub bytes: usize,
    /// Average duration of one run.
    pub duration: Duration,
}

/// Verdict of a program on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Redirect to a device: that of a port or, with tc, that of the node.
    Redirect,
    /// Pass up the stack.
    Pass,
    /// Drop the frame.
    Drop,
    /// Other return value.
    Other(u32),
}

/// Maximum number of routes in one switch. The kernel reserves 16 bytes for each.
const ROUTES_MAX: u32 = 1 << 20;

/// All 16-bit numbers. A loader borrows its constants from here.
static NUMBERS: [u16; 1 << 16] = {
    let mut numbers = [0; 1 << 16];
    let mut number = 0;
    while number < numbers.len() {
        numbers[number] = number as u16;
        number += 1;
    }
    numbers
};

const fn constant(number: usize) -> &'static u16 {
    let largest = NUMBERS.len() - 1;
    &NUMBERS[if number < largest { number } else { largest }]
}

/// Loader for the programs of one data plane. It is kept, because creating it reads all types of
/// the kernel, which takes longer than loading a program.
pub(super) struct Loader {
    loader: EbpfLoader<'static>,
    hook: Hook,
}

impl Loader {
    /// Creates a loader for a switch whose tables are or will be pinned in `folder`.
    pub(super) fn new(settings: &KernelSettings, folder: &Path) -> Loader {
        let ports = u32::from(settings.ports);
        let routes = ports.saturating_mul(settings.routes_per_port_max as u32);
        let bits: &'static u8 = match settings.hop_width {
            HopWidth::Four => &4,
            HopWidth::Eight => &8,
            HopWidth::Sixteen => &16,
        };
        let mut loader = EbpfLoader::new();
        loader
            .btf(None)
            .override_global("HOP_BITS", bits, true)
            .override_global("ROUTE_BYTES_MAX", constant(settings.route_bytes_max), true)
            .override_global("FRAME_BYTES_MAX", constant(settings.frame_bytes_max), true)
            .override_global(
                "NODE_FRAMES_PER_MS",
                constant(usize::from(settings.node_frames_per_ms)),
                settings.hook == Hook::Tc,
            )
            .map_max_entries("ports", ports)
            .map_max_entries("traffic", ports)
            .map_max_entries("routes", routes.clamp(1, ROUTES_MAX));
        if settings.hook == Hook::Xdp {
            loader.map_max_entries("links", ports).map_max_entries("hosts", ports);
        }
        for table in tables(settings.hook) {
            loader.map_pin_path(table, folder.join(table));
        }
        Loader { loader, hook: settings.hook }
    }

    fn open(&mut self, port: PortNo) -> Result<Ebpf, KernelError> {
        self.loader.override_global("PORT", constant(port.index()), true);
        Ok(self.loader.load(object(self.hook))?)
    }

    /// Pins and returns the tables of this data plane, by name.
    pub(super) fn tables(&mut self) -> Result<impl FnMut(&str) -> Option<Map>, KernelError> {
        let mut ebpf = self.open(PortNo(0))?;
        Ok(move |name: &str| ebpf.take_map(name))
    }

    /// Loads the program of `port`.
    pub(super) fn load(&mut self, port: PortNo) -> Result<LoadedProgram, KernelError> {
        let hook = self.hook;
        let mut ebpf = self.open(port)?;
        let loaded = match program_of(&mut ebpf, hook) {
            Program::Xdp(program) => program.load(),
            Program::SchedClassifier(program) => program.load(),
            _ => Err(ProgramError::UnexpectedProgramType),
        };
        match loaded {
            Ok(()) => Ok(LoadedProgram { ebpf, hook }),
            Err(ProgramError::LoadError { io_error, verifier_log }) => {
                Err(refused(name(hook), verifier_log.to_string(), io_error))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Builds the error for a program that failed to load. If there is no log, the verifier has not
/// run.
fn refused(program: &'static str, log: String, source: io::Error) -> KernelError {
    if log.is_empty() && source.raw_os_error() == Some(libc::EPERM) {
        return KernelError::NotPermitted;
    }
    KernelError::Refused { program, log, source }
}

fn program_of(ebpf: &mut Ebpf, hook: Hook) -> &mut Program {
    ebpf.program_mut(name(hook)).expect("the object has its program")
}

impl LoadedProgram {
    /// Runs the program on `frame` `repeat` times with BPF_PROG_RUN, without sending anything. The
    /// resulting frame is in `out`.
    ///
    /// # Errors
    /// EINVAL for less than 14 bytes or more than a page, and ENOSPC if `out` is too short.
    pub fn run(
        &mut self,
        frame: &[u8],
        out: &mut [u8],
        repeat: u32,
    ) -> Result<TestRunOutcome, KernelError> {
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(out),
            repeat,
            ..Default::default()
        };
        let (result, verdicts) = match program_of(&mut self.ebpf, self.hook) {
            Program::Xdp(program) => (program.test_run(options)?, [4, 2, 1]),
            Program::SchedClassifier(program) => (program.test_run(options)?, [7, 0, 2]),
            _ => return Err(ProgramError::UnexpectedProgramType.into()),
        };
        let names = [Verdict::Redirect, Verdict::Pass, Verdict::Drop];
        let named = verdicts.iter().position(|verdict| *verdict == result.return_value);
        Ok(TestRunOutcome {
            verdict: named.map_or(Verdict::Other(result.return_value), |index| names[index]),
            bytes: result.data_size_out as usize,
            duration: result.duration,
        })
    }

    /// Attaches the program to `device` in the calling thread's network namespace with a filter,
    /// which `folder` records.
    pub(super) fn attach_filter(&mut self, device: &str, folder: &Path) -> Result<(), KernelError> {
        match program_of(&mut self.ebpf, self.hook) {
            Program::SchedClassifier(program) => {
                filter::attach(program, device, folder).map_err(|error| at_device(device, error))
            }
            _ => Err(ProgramError::UnexpectedProgramType.into()),
        }
    }

    /// Attaches the program to `device` in the calling thread's network namespace.
    pub(super) fn attach(&mut self, device: &str) -> Result<(FdLink, Attachment), KernelError> {
        match program_of(&mut self.ebpf, self.hook) {
            Program::Xdp(program) => attach_xdp(program, device),
            Program::SchedClassifier(program) => attach_tc(program, device),
            _ => Err(ProgramError::UnexpectedProgramType.into()),
        }
    }

    /// Replaces the pinned program without a gap. Returns whether its device still exists.
    pub(super) fn replace(&mut self, pinned: PinnedLink) -> Result<bool, KernelError> {
        let link = FdLink::from(pinned);
        let replaced = match program_of(&mut self.ebpf, self.hook) {
            Program::Xdp(program) => program.attach_to_link(link.try_into()?).map(|_| ()),
            Program::SchedClassifier(program) => {
                program.attach_to_link(link.try_into()?).map(|_| ())
            }
            _ => Err(ProgramError::UnexpectedProgramType),
        };
        match replaced.map_err(KernelError::from) {
            Ok(()) => Ok(true),
            Err(error) if error.errno() == Some(libc::ENOLINK) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Converts an attachment error to one about the device.
fn attach_error(device: &str, error: ProgramError) -> KernelError {
    at_device(device, error.into())
}

fn at_device(device: &str, error: KernelError) -> KernelError {
    match error {
        KernelError::System { source, .. } => KernelError::Attach { device: device.into(), source },
        error => error,
    }
}

fn attach_tc(
    program: &mut SchedClassifier,
    device: &str,
) -> Result<(FdLink, Attachment), KernelError> {
    let first = TcAttachOptions::TcxOrder(LinkOrder::first());
    let id = program.attach_with_options(device, TcAttachType::Ingress, first);
    let id = id.map_err(|error| match attach_error(device, error) {
        KernelError::Attach { source, .. } if source.raw_os_error() == Some(libc::EINVAL) => {
            KernelError::Missing { feature: "TCX links, which Linux has from 6.6 on" }
        }
        error => error,
    })?;
    Ok((program.take_link(id)?.try_into()?, Attachment::Tc))
}

fn attach_xdp(program: &mut Xdp, device: &str) -> Result<(FdLink, Attachment), KernelError> {
    let (id, attachment) = match program.attach(device, XdpMode::Driver) {
        Ok(id) => (id, Attachment::XdpNative),
        Err(error) => match attach_error(device, error) {
            KernelError::Attach { source, .. }
                if source.raw_os_error() == Some(libc::EOPNOTSUPP) =>
            {
                let id = program.attach(device, XdpMode::Skb);
                (id.map_err(|error| attach_error(device, error))?, Attachment::XdpGeneric)
            }
            error => return Err(error),
        },
    };
    let link = program.take_link(id)?;
    let link = link.try_into().map_err(|_| KernelError::Missing {
        feature: "links for XDP, which Linux has from 5.9 on",
    })?;
    Ok((link, attachment))
}
