//! Why the kernel does not carry the frames.

use axon_node::RouteError;
use aya::maps::MapError;
use aya::maps::xdp::XdpMapError;
use aya::pin::PinError;
use aya::programs::ProgramError;
use aya::programs::links::LinkError;
use aya::sys::SyscallError;
use aya::{EbpfError, programs::tc::TcError};
use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be done with the kernel's data plane. Its tables are as before.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Without CAP_BPF and CAP_NET_ADMIN in the machine's own user namespace.
    #[error("BPF programs are not permitted here: that takes root outside of user namespaces")]
    NotPermitted,
    /// The kernel is too old, or was built without it.
    #[error("the kernel has no {feature}")]
    Missing {
        /// What it lacks, and where that comes from.
        feature: &'static str,
    },
    /// Programs and tables can be kept in a BPF file system only.
    #[error(
        "{} is not in a BPF file system: mount one, with `mount -t bpf bpf DIRECTORY`", .0.display()
    )]
    NotBpfFileSystem(PathBuf),
    /// The folder is that of another data plane, or of another version of the programs.
    #[error(
        "{} holds the tables of another data plane ({found}): remove them first", folder.display()
    )]
    OtherPlane {
        /// The folder that was to be opened.
        folder: PathBuf,
        /// What lies in it, by its settings.
        found: String,
    },
    /// The verifier refused a program.
    #[error("the kernel refused the program {program} ({source}):\n{log}")]
    Refused {
        /// The program's name.
        program: &'static str,
        /// The verifier's log.
        log: String,
        /// What the system call returned.
        source: io::Error,
    },
    /// No such port, a full table, or a route that no header can hold.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A route whose header is longer than the programs can attach.
    #[error("a header of {bytes} bytes is longer than the {bytes_max} that the kernel attaches")]
    RouteTooLong {
        /// Of its header.
        bytes: usize,
        /// The most.
        bytes_max: usize,
    },
    /// A device cannot have the program.
    #[error("cannot attach to {device}: {source}")]
    Attach {
        /// Its name.
        device: String,
        /// What the kernel returned.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{call}: {source}")]
    System {
        /// What was being done.
        call: String,
        /// What the kernel returned.
        source: io::Error,
    },
}

impl KernelError {
    /// A failed call; what it means that there is no such call, or no permission, is said.
    pub(super) fn system(call: impl Into<String>, source: io::Error) -> KernelError {
        match source.raw_os_error() {
            Some(libc::EPERM) => KernelError::NotPermitted,
            Some(libc::ENOSYS) => {
                KernelError::Missing { feature: "BPF programs (CONFIG_BPF_SYSCALL)" }
            }
            _ => KernelError::System { call: call.into(), source },
        }
    }

    fn other(error: impl std::error::Error) -> KernelError {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        KernelError::System { call: "BPF".into(), source: io::Error::other(text) }
    }

    /// What the kernel answered, if it was asked.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            KernelError::Refused { source, .. }
            | KernelError::Attach { source, .. }
            | KernelError::System { source, .. } => source.raw_os_error(),
            KernelError::NotPermitted => Some(libc::EPERM),
            _ => None,
        }
    }
}

/// A failed call about a file of the folder.
pub(super) fn of_folder(folder: &Path) -> impl Fn(io::Error) -> KernelError + '_ {
    |error| KernelError::system(folder.display().to_string(), error)
}

impl From<SyscallError> for KernelError {
    fn from(error: SyscallError) -> KernelError {
        KernelError::system(error.call, error.io_error)
    }
}

impl From<MapError> for KernelError {
    fn from(error: MapError) -> KernelError {
        match error {
            MapError::SyscallError(error) => error.into(),
            MapError::CreateError { name, io_error } => {
                KernelError::system(format!("cannot create the table {name}"), io_error)
            }
            MapError::PinError { error, .. } => error.into(),
            error => KernelError::other(error),
        }
    }
}

impl From<XdpMapError> for KernelError {
    fn from(error: XdpMapError) -> KernelError {
        match error {
            XdpMapError::MapError(error) => error.into(),
            error => KernelError::other(error),
        }
    }
}

impl From<PinError> for KernelError {
    fn from(error: PinError) -> KernelError {
        match error {
            PinError::SyscallError(error) => error.into(),
            error => KernelError::other(error),
        }
    }
}

impl From<LinkError> for KernelError {
    fn from(error: LinkError) -> KernelError {
        match error {
            LinkError::SyscallError(error) => error.into(),
            error => KernelError::other(error),
        }
    }
}

impl From<EbpfError> for KernelError {
    fn from(error: EbpfError) -> KernelError {
        match error {
            EbpfError::MapError(error) => error.into(),
            EbpfError::ProgramError(error) => error.into(),
            error => KernelError::other(error),
        }
    }
}

impl From<ProgramError> for KernelError {
    fn from(error: ProgramError) -> KernelError {
        match error {
            ProgramError::SyscallError(error) => error.into(),
            ProgramError::MapError(error) => error.into(),
            ProgramError::TcError(error) => error.into(),
            ProgramError::NetlinkError(error) => TcError::NetlinkError(error).into(),
            error => KernelError::other(error),
        }
    }
}

impl From<TcError> for KernelError {
    fn from(error: TcError) -> KernelError {
        match error {
            TcError::IoError(error) => KernelError::system("tc", error),
            TcError::NetlinkError(error) => match error.raw_os_error() {
                Some(code) => KernelError::system("tc", io::Error::from_raw_os_error(code)),
                None => KernelError::other(error),
            },
            error => KernelError::other(error),
        }
    }
}
