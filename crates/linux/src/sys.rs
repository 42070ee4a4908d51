//! System calls without a wrapper in our dependencies: device ioctls, packet-socket options,
//! `sendmmsg`.
//!
//! Most of the unsafe code in this crate is here; see [`crate`] for the other modules. Every
//! function here is safe to call. It owns its buffers and returns the kernel's result as
//! [`io::Result`].

use serde::{Deserialize, Serialize};
use std::ffi::{c_int, c_void};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum number of frames in one call of [`send_many`].
pub const SEND_MAX: usize = 64;

/// `IFF_UP | IFF_RUNNING`: administratively up and with carrier.
pub(crate) const UP_AND_RUNNING: u32 = (libc::IFF_UP | libc::IFF_RUNNING) as u32;

/// Offload that ethtool can switch (linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Offload {
    /// Checksums left to the device on transmit.
    TxChecksum,
    /// Scatter-gather.
    ScatterGather,
    /// TCP segmentation.
    Tso,
    /// Generic segmentation.
    Gso,
    /// Generic receive offload.
    Gro,
    /// Receive offload of the device itself.
    Lro,
    /// VLAN tags left to the device on transmit.
    TxVlan,
    /// VLAN tags removed by the device on receive.
    RxVlan,
}

/// Method by which ethtool switches an offload on or off.
#[derive(Clone, Copy)]
enum Switch {
    /// Command that reads the setting. The next number is the command that sets it.
    Command(u32),
    /// Bit in a word of flags that are read and set together.
    Flag(u32),
}

/// ethtool command that reads the flags of a device. The next number is the command that sets them.
const ETHTOOL_GFLAGS: u32 = 0x25;

impl Offload {
    fn switch(self) -> Switch {
        match self {
            Offload::TxChecksum => Switch::Command(0x16),
            Offload::ScatterGather => Switch::Command(0x18),
            Offload::Tso => Switch::Command(0x1e),
            Offload::Gso => Switch::Command(0x23),
            Offload::Gro => Switch::Command(0x2b),
            Offload::Lro => Switch::Flag(1 << 15),
            Offload::TxVlan => Switch::Flag(1 << 7),
            Offload::RxVlan => Switch::Flag(1 << 8),
        }
    }
}

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(result: c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel has just returned this descriptor, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Builds a request about the device `name`, which has at most 15 bytes.
fn request(name: &str) -> io::Result<libc::ifreq> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a device name"));
    }
    // SAFETY: `ifreq` is plain data for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}

/// Runs a device ioctl in the calling thread's network namespace.
fn device_ioctl(code: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    let socket =
        owned(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    let request: *mut libc::ifreq = request;
    // SAFETY: `request` is a valid ifreq for the length of the call, and a pointer inside it
    // (ethtool) is to a buffer that the caller keeps alive.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), code, request) })?;
    Ok(())
}

/// Returns the flags (`IFF_*`) of a device in this thread's network namespace.
///
/// # Errors
/// ENODEV if there is no such device.
pub fn device_flags(name: &str) -> io::Result<u32> {
    let mut request = request(name)?;
    device_ioctl(libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS has filled this member of the union.
    Ok(u32::from(unsafe { request.ifr_ifru.ifru_flags } as u16))
}

/// Sets a device administratively up or down.
///
/// # Errors
/// ENODEV, or EPERM without CAP_NET_ADMIN.
pub fn set_device_up(name: &str, up: bool) -> io::Result<()> {
    let flags = device_flags(name)?;
    let bit = libc::IFF_UP as u32;
    let mut request = request(name)?;
    let wanted = if up { flags | bit } else { flags & !bit };
    request.ifr_ifru.ifru_flags = wanted as u16 as i16;
    device_ioctl(libc::SIOCSIFFLAGS, &mut request)
}

/// Returns the MTU of a device, in bytes of payload after the 14-byte Ethernet header.
///
/// # Errors
/// ENODEV if there is no such device.
pub fn device_mtu(name: &str) -> io::Result<usize> {
    let mut request = request(name)?;
    device_ioctl(libc::SIOCGIFMTU, &mut request)?;
    // SAFETY: SIOCGIFMTU has filled this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as usize)
}

/// Sets the queue length, in frames, of a device that has no queues of its own.
///
/// # Errors
/// ENODEV, or EPERM without CAP_NET_ADMIN.
pub(crate) fn set_queue_length(name: &str, frames: c_int) -> io::Result<()> {
    let mut request = request(name)?;
    // The kernel reads the length from the metric field.
    request.ifr_ifru.ifru_metric = frames;
    device_ioctl(libc::SIOCSIFTXQLEN, &mut request)
}

/// Returns the Ethernet address of a device.
///
/// # Errors
/// ENODEV if there is no such device.
pub fn device_mac(name: &str) -> io::Result<[u8; 6]> {
    let mut request = request(name)?;
    device_ioctl(libc::SIOCGIFHWADDR, &mut request)?;
    // SAFETY: SIOCGIFHWADDR has filled this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_data;
    Ok(std::array::from_fn(|byte| address[byte] as u8))
}

/// Switches an offload of a device on or off.
///
/// # Errors
/// EOPNOTSUPP if the device does not have the offload, and EPERM without CAP_NET_ADMIN.
pub fn set_offload(name: &str, offload: Offload, on: bool) -> io::Result<()> {
    let (command, data) = match offload.switch() {
        Switch::Command(read) => (read + 1, u32::from(on)),
        Switch::Flag(flag) => {
            let others = ethtool(name, ETHTOOL_GFLAGS, 0)? & !flag;
            (ETHTOOL_GFLAGS + 1, others | if on { flag } else { 0 })
        }
    };
    ethtool(name, command, data).map(drop)
}

/// Returns whether an offload of a device is on.
///
/// # Errors
/// ENODEV if there is no such device, EOPNOTSUPP if it has no such feature.
pub fn offload(name: &str, offload: Offload) -> io::Result<bool> {
    match offload.switch() {
        Switch::Command(read) => Ok(ethtool(name, read, 0)? != 0),
        Switch::Flag(flag) => Ok(ethtool(name, ETHTOOL_GFLAGS, 0)? & flag != 0),
    }
}

/// Runs an ethtool command with one word of data, and returns the resulting word.
fn ethtool(name: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    device_ioctl(libc::SIOCETHTOOL as libc::Ioctl, &mut request)?;
    Ok(value.data)
}

/// Opens TAP device `name`, and creates it if it is missing. The device is non-blocking and has no
/// offloads, and its Ethernet frames have no additional header.
///
/// # Errors
/// ENOENT or EACCES without `/dev/net/tun`, EPERM without CAP_NET_ADMIN, EBUSY if the device is in
/// use.
pub(crate) fn open_tap(name: &str) -> io::Result<OwnedFd> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which `request` is.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    Ok(file.into())
}

/// Opens a packet socket that receives nothing yet.
///
/// # Errors
/// EPERM without CAP_NET_RAW.
pub fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed.
    owned(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })
}

/// Binds a packet socket to a device. `protocol` is an EtherType or `ETH_P_ALL`. If it is 0, the
/// socket only sends.
///
/// # Errors
/// ENODEV, or ENETDOWN if the device is down.
pub fn bind_packet(fd: BorrowedFd<'_>, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain data for which all zeros is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as c_int;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is valid for the length given.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// Enables promiscuous mode on a device while the socket is open.
///
/// # Errors
/// ENODEV if there is no such device.
pub(crate) fn promiscuous(fd: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index as c_int,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_packet_option(fd, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Sets a `SOL_PACKET` option.
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn set_packet_option<T: Copy>(fd: BorrowedFd<'_>, option: c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value: *const T = value;
    // SAFETY: `value` is valid for the length given, and the kernel only reads it.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_PACKET, option, value.cast::<c_void>(), length)
    })?;
    Ok(())
}

/// Raises the scheduling priority of this process above ordinary ones (nice -10). If the process
/// leads its session, also raises that of the session, because the nice value applies only within
/// one session if the kernel divides the CPU among sessions (sched(7), autogroup).
///
/// # Errors
/// EPERM or EACCES without CAP_SYS_NICE in the machine's own user namespace. Also if the share of
/// the session cannot be changed.
pub fn prefer_this_process() -> io::Result<()> {
    const NICE: c_int = -10;
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) })?;
    let group = Path::new("/proc/self/autogroup");
    if nix::unistd::getsid(None)? == nix::unistd::getpid() && group.exists() {
        std::fs::write(group, NICE.to_string())
            .map_err(|error| io::Error::other(format!("its session is like others: {error}")))?;
    }
    Ok(())
}

/// Returns the frames lost at a packet socket since the last call because its ring was full.
///
/// # Errors
/// The error of `getsockopt(2)`.
pub(crate) fn packet_drops(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: `stats` is writable for the length given.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut length,
        )
    })?;
    Ok(u64::from(stats.tp_drops))
}

/// Sends up to [`SEND_MAX`] of `frames` with one system call. Returns the number sent.
///
/// # Errors
/// The error for the first frame. The error for a later frame is returned by the next call.
pub fn send_many(fd: BorrowedFd<'_>, frames: &[&[u8]]) -> io::Result<usize> {
    let count = frames.len().min(SEND_MAX);
    // SAFETY: `iovec` is plain data for which all zeros is a value.
    let mut vectors: [libc::iovec; SEND_MAX] = unsafe { std::mem::zeroed() };
    // SAFETY: `mmsghdr` is plain data for which all zeros is a value.
    let mut messages: [libc::mmsghdr; SEND_MAX] = unsafe { std::mem::zeroed() };
    for ((vector, message), frame) in vectors.iter_mut().zip(&mut messages).zip(frames) {
        vector.iov_base = frame.as_ptr().cast_mut().cast();
        vector.iov_len = frame.len();
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: the first `count` messages point at live iovecs, and those point at live frames,
    // which the kernel only reads.
    let sent = check(unsafe {
        libc::sendmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
        )
    })?;
    Ok(sent as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_too_long_for_a_device_is_refused() {
        assert!(device_flags("a-name-of-sixteen").is_err());
        assert!(device_flags("").is_err());
    }

    #[test]
    fn the_loopback_device_can_be_asked_about() {
        assert!(device_mtu("lo").unwrap() >= 1500);
        assert_ne!(device_flags("lo").unwrap() & libc::IFF_LOOPBACK as u32, 0);
    }
}
