//! Attachment at tc on kernels without TCX links (before Linux 6.6), with the qdisc clsact and a
//! filter on it.
//!
//! A filter belongs to its device and is removed with it, not with a process or a pin. Therefore, a
//! folder among the pins records it. It contains the number of the network namespace, because
//! ifindexes are not unique across namespaces. The folder is created first and removed last, so
//! every filter has one. A predecessor may have left a folder without a filter. The qdisc stays,
//! because others may use it.

use super::error::{KernelError, of_folder};
use aya::programs::links::Link as _;
use aya::programs::tc::{self, NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle};
use aya::programs::{SchedClassifier, TcAttachType};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Priority of the filter, which puts it before all other filters.
const PRIORITY: u16 = 1;
/// Handle that identifies the filter as ours.
const HANDLE: TcHandle = TcHandle::new(0, 0x4178);

/// Returns the inode number of the calling thread's network namespace.
fn namespace() -> Result<String, KernelError> {
    let path = Path::new("/proc/thread-self/ns/net");
    Ok(fs::metadata(path).map_err(of_folder(path))?.ino().to_string())
}

/// Returns whether the error means a missing filter or qdisc.
fn is_missing(error: &KernelError) -> bool {
    matches!(error.errno(), Some(libc::ENOENT | libc::EINVAL | libc::ENODEV))
}

fn link(device: &str) -> Result<SchedClassifierLink, KernelError> {
    let link = SchedClassifierLink::attached(device, TcAttachType::Ingress, PRIORITY, HANDLE, None);
    link.map_err(|error| KernelError::system(device, error))
}

/// Keeps the attachment when this process ends. Otherwise, aya would detach it.
fn keep(program: &mut SchedClassifier, id: tc::SchedClassifierLinkId) -> Result<(), KernelError> {
    std::mem::forget(program.take_link(id)?);
    Ok(())
}

/// Attaches the program to `device` in the thread's namespace. A filter that we have installed
/// earlier is replaced without a gap. `folder` records the attachment.
pub(super) fn attach(
    program: &mut SchedClassifier,
    device: &str,
    folder: &Path,
) -> Result<(), KernelError> {
    fs::create_dir_all(folder.join(namespace()?)).map_err(of_folder(folder))?;
    let attached = match replace(program, device) {
        Err(error) if is_missing(&error) => create(program, device),
        done => done,
    };
    if attached.is_err() {
        remove_folder(folder)?;
    }
    attached
}

fn replace(program: &mut SchedClassifier, device: &str) -> Result<(), KernelError> {
    let id = program.attach_to_link(link(device)?)?;
    keep(program, id)
}

fn create(program: &mut SchedClassifier, device: &str) -> Result<(), KernelError> {
    match tc::qdisc_add_clsact(device).map_err(KernelError::from) {
        Err(error) if error.errno() != Some(libc::EEXIST) => return Err(error),
        _ => {}
    }
    let options = NlOptions { priority: PRIORITY, handle: HANDLE, classid: None };
    let options = TcAttachOptions::Netlink(options);
    let id = program.attach_with_options(device, TcAttachType::Ingress, options)?;
    keep(program, id)
}

/// Detaches the program that `folder` records from the device `ifindex`, and removes the folder. In
/// another namespace, or after the device has gone, there is nothing to detach.
pub(super) fn detach(ifindex: u32, folder: &Path) -> Result<(), KernelError> {
    if folder.join(namespace()?).exists()
        && let Ok(device) = nix::net::if_::if_indextoname(ifindex)
    {
        // The name is empty if the device does not exist or no longer exists.
        let link = link(&device.to_string_lossy());
        match link.and_then(|link| link.detach().map_err(KernelError::from)) {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
    }
    remove_folder(folder)
}

fn remove_folder(folder: &Path) -> Result<(), KernelError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(of_folder(folder)(error)),
        _ => Ok(()),
    }
}
