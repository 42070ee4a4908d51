//! Errors of the kernel's data plane.

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

/// Error of the kernel's data plane. Its tables are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// CAP_BPF or CAP_NET_ADMIN is missing in the machine's own user namespace.
    #[error("BPF programs are not permitted here: that takes root outside of user namespaces")]
    NotPermitted,
    /// The kernel is too old, or was built without a feature.
    #[error("the kernel has no {feature}")]
    Missing {
        /// Missing feature, and the version or option that provides it.
        feature: &'static str,
    },
    /// The folder is not in a BPF file system, which pins require.
    #[error(
        "{} is not in a BPF file system: mount one, with `mount -t bpf bpf DIRECTORY`", .0.display()
    )]
    NotBpfFileSystem(PathBuf),
    /// The folder belongs to another data plane or to another version of the programs.
    #[error(
        "{} holds the tables of another data plane ({found}): remove them first", folder.display()
    )]
    OtherPlane {
        /// Folder that was to be opened.
        folder: PathBuf,
        /// Name of the settings found in the folder.
        found: String,
    },
    /// The verifier refused a program.
    #[error("the kernel refused the program {program} ({source}):\n{log}")]
    Refused {
        /// Name of the program.
        program: &'static str,
        /// Log of the verifier.
        log: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// There is no such port, the table is full, or no header can hold the route.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The header of a route is longer than the programs can attach.
    #[error("a header of {bytes} bytes is longer than the {bytes_max} that the kernel attaches")]
    RouteTooLong {
        /// Length of the header, in bytes.
        bytes: usize,
        /// Maximum length, in bytes.
        bytes_max: usize,
    },
    /// The program cannot be attached to a device.
    #[error("cannot attach to {device}: {source}")]
    Attach {
        /// Name of the device.
        device: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{call}: {source}")]
    System {
        /// Operation that failed.
        call: String,
        /// Error of the kernel.
        source: io::Error,
    },
}

impl KernelError {
    /// Builds the error for a failed call. Explains errors that mean a missing call or permission.
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

    /// Returns the kernel's error number, if there is one.
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

/// Returns a function that builds the error for a failed call on a file in this folder.
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
