//! Writer of port traffic to pcapng files.
//!
//! Each port has one interface per link type: Ethernet, and Axon packets on links between switches.
//! Both interfaces have the port's name. Times are in nanoseconds.

use super::frame::{Direction, FRAME_BYTES_MAX, LinkType, NAME_BYTES_MAX};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Value of `if_tsresol` for nanoseconds, the negated power of ten.
const NANOSECONDS: u8 = 9;

/// Options of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Output file. An existing file is overwritten.
    pub path: PathBuf,
    /// Maximum number of bytes captured of each frame, at most [`FRAME_BYTES_MAX`].
    pub snap_bytes: u32,
    /// Size limit of the file in bytes. Writing ends before the limit is exceeded.
    pub file_bytes_max: u64,
}

impl CaptureOptions {
    /// Returns options that capture whole frames, up to a file size of 256 MiB.
    pub fn to(path: impl Into<PathBuf>) -> CaptureOptions {
        CaptureOptions { path: path.into(), snap_bytes: 65_535, file_bytes_max: 256 << 20 }
    }
}

/// Writer of a pcapng capture.
pub struct Writer<W: Write = BufWriter<File>> {
    out: W,
    /// Buffer for one block, so that its length is known before it is written.
    blocks: PcapNgWriter<Vec<u8>>,
    snap_bytes: u32,
    bytes_left: u64,
    interfaces: BTreeMap<(usize, LinkType), u32>,
}

impl Writer {
    /// Creates the file, readable by its owner only, and writes its header.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn create(options: &CaptureOptions) -> io::Result<Writer> {
        let file = BufWriter::new(create_or_empty_own(&options.path)?);
        Writer::new(file, options.snap_bytes, options.file_bytes_max)
    }
}

/// Opens a file that only its owner may read, and empties it. `-` is standard output.
///
/// An existing file must be owned by this user, and have only one name, which is no symbolic link.
/// Otherwise another user could choose the file to be overwritten, or read the capture. Devices and
/// pipes are left unchanged.
fn create_or_empty_own(path: &Path) -> io::Result<File> {
    use std::os::fd::AsFd;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    if path == Path::new("-") {
        return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    }
    // A new file is never created through a link.
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let open = |flags: OFlag| File::options().write(true).custom_flags(flags.bits()).open(path);
    let (file, is_link) = match open(OFlag::O_NOFOLLOW) {
        Err(error) if error.raw_os_error() == Some(Errno::ELOOP as i32) => {
            (open(OFlag::empty())?, true)
        }
        opened => (opened?, false),
    };
    let found = file.metadata()?;
    if found.is_file() {
        let user = nix::unistd::geteuid().as_raw();
        let refusal = match (is_link, found.uid(), found.nlink()) {
            (true, ..) => Some("is named by a symbolic link"),
            (_, owner, _) if owner != user => Some("belongs to another user"),
            (.., names) if names > 1 => Some("has more than one name (hard links)"),
            _ => None,
        };
        if let Some(refusal) = refusal {
            let text = format!("the file exists and {refusal}; remove it or name another");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.set_len(0)?;
    }
    Ok(file)
}

impl<W: Write> Writer<W> {
    /// Starts a capture on any writer and writes its header. Frames are truncated to `snap_bytes`
    /// bytes, and all blocks together are limited to `bytes_max` bytes.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn new(out: W, snap_bytes: u32, bytes_max: u64) -> io::Result<Writer<W>> {
        let blocks = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little);
        let mut writer = Writer {
            out,
            blocks: blocks.map_err(failed)?,
            snap_bytes: snap_bytes.min(FRAME_BYTES_MAX as u32),
            bytes_left: bytes_max,
            interfaces: BTreeMap::new(),
        };
        writer.send()?;
        Ok(writer)
    }

    /// Writes one frame at port number `port`, called `name`, with the time `unix_nanos` in
    /// nanoseconds since the beginning of 1970. Once the file is full, nothing is written.
    ///
    /// # Errors
    /// The error of the writer, or a name of more than 255 bytes.
    pub fn record(
        &mut self,
        (port, name): (usize, &str),
        link_type: LinkType,
        direction: Direction,
        unix_nanos: u64,
        frame: &[u8],
    ) -> io::Result<()> {
        let interface_id = match self.interfaces.get(&(port, link_type)) {
            Some(interface) => *interface,
            None => self.describe(port, name, link_type)?,
        };
        let kept = &frame[..frame.len().min(self.snap_bytes as usize)];
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(unix_nanos),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(kept),
            options: vec![EnhancedPacketOption::Flags(direction as u32)],
        };
        self.blocks.write_pcapng_block(block).map_err(failed)?;
        self.send()
    }

    /// Flushes all recorded frames to the file.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn describe(&mut self, port: usize, name: &str, link_type: LinkType) -> io::Result<u32> {
        if name.len() > NAME_BYTES_MAX {
            let text = format!("a port's name of {} bytes; at most {NAME_BYTES_MAX}", name.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        let linktype = DataLink::from(u32::from(link_type.0));
        let block = InterfaceDescriptionBlock { linktype, snaplen: self.snap_bytes, options };
        self.blocks.write_pcapng_block(block).map_err(failed)?;
        self.send()?;
        let interface = self.interfaces.len() as u32;
        self.interfaces.insert((port, link_type), interface);
        Ok(interface)
    }

    /// Writes the buffered block. A block that would exceed the file's limit ends the capture.
    fn send(&mut self) -> io::Result<()> {
        let block = self.blocks.get_mut();
        let bytes = block.len() as u64;
        let fits = bytes <= self.bytes_left;
        self.bytes_left = if fits { self.bytes_left - bytes } else { 0 };
        let sent = if fits { self.out.write_all(block) } else { Ok(()) };
        block.clear();
        sent
    }
}

/// Converts the error. The crate's writer to memory fails only with errors of the operating system.
fn failed(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_into_a_file_that_others_could_read_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("axon-private-{}.pcapng", std::process::id()));
        std::fs::write(&path, [7; 1_000]).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let file = create_or_empty_own(&path).unwrap();
        let found = file.metadata().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((found.permissions().mode() & 0o777, found.len()), (0o600, 0));
        assert!(create_or_empty_own(Path::new("/dev/null")).is_ok(), "a device is as it is");
    }

    /// Returns a separate folder for one test.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("axon-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    fn refusal(path: &Path) -> String {
        create_or_empty_own(path).map_or_else(|error| error.to_string(), |_| "none".into())
    }

    #[test]
    fn a_file_that_somebody_else_prepared_is_refused_and_left_as_it_is() {
        let folder = folder("prepared");
        let (secret, soft, hard) =
            (folder.join("secret"), folder.join("soft"), folder.join("hard"));
        let (dangling, target) = (folder.join("dangling"), folder.join("target"));
        std::fs::write(&secret, "theirs").unwrap();
        std::os::unix::fs::symlink(&secret, &soft).unwrap();
        std::os::unix::fs::symlink(&target, &dangling).unwrap();
        let (by_link, by_dangling) = (refusal(&soft), create_or_empty_own(&dangling).is_err());
        std::fs::hard_link(&secret, &hard).unwrap();
        let by_hard_link = refusal(&hard);
        let (kept, made) = (std::fs::read_to_string(&secret).unwrap(), target.exists());
        std::fs::remove_dir_all(&folder).unwrap();
        let way_out = "; remove it or name another";
        assert_eq!(by_link, format!("the file exists and is named by a symbolic link{way_out}"));
        let names = "has more than one name (hard links)";
        assert_eq!(by_hard_link, format!("the file exists and {names}{way_out}"));
        assert_eq!((kept.as_str(), by_dangling, made), ("theirs", true, false));
    }

    #[test]
    fn a_file_of_another_user_is_refused_also_by_root() {
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var_os("CI").is_none(), "only root can give a file away");
            return println!("skipped: only root can give a file away");
        }
        let folder = folder("theirs");
        let theirs = folder.join("theirs");
        std::fs::write(&theirs, "theirs").unwrap();
        std::os::unix::fs::chown(&theirs, Some(4_321), None).unwrap();
        let refused = refusal(&theirs);
        std::fs::remove_dir_all(&folder).unwrap();
        let expected = "the file exists and belongs to another user; remove it or name another";
        assert_eq!(refused, expected);
    }

    /// File written out by hand, as given in the standard (draft-ietf-opsawg-pcapng §4.1 to §4.3).
    #[test]
    fn the_bytes_are_those_of_the_standard() {
        let mut writer = Writer::new(Vec::new(), 8, 1 << 20).unwrap();
        for link_type in [LinkType::AXON, LinkType::ETHERNET, LinkType::AXON] {
            let port = (3, "s1-p3");
            writer.record(port, link_type, Direction::Outbound, 1 << 33 | 5, &[9; 13]).unwrap();
        }
        let section: &[u8] = &[
            0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0,
        ];
        let interface = |link_type: u8| {
            let fields = [1, 0, 0, 0, 44, 0, 0, 0, link_type, 0, 0, 0, 8, 0, 0, 0, 2, 0, 5, 0];
            let options = [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0];
            [&fields[..], b"s1-p3\0\0\0", &options].concat()
        };
        let packet = |interface: u8| {
            let fields = [6, 0, 0, 0, 52, 0, 0, 0, interface, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0];
            let lengths = [8, 0, 0, 0, 13, 0, 0, 0];
            let options = [2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0];
            [&fields[..], &lengths, &[9; 8], &options].concat()
        };
        let blocks = [interface(147), packet(0), interface(1), packet(1), packet(0)].concat();
        assert_eq!(writer.out, [section, &blocks].concat());
    }

    #[test]
    fn a_full_capture_stays_a_whole_file() {
        let whole = |bytes_max: u64| {
            let mut writer = Writer::new(Vec::new(), 100, bytes_max).unwrap();
            for _ in 0..10 {
                let port = (0, "s1-p0");
                writer.record(port, LinkType::ETHERNET, Direction::Inbound, 0, &[1; 60]).unwrap();
            }
            writer.out
        };
        let all = whole(u64::MAX);
        for bytes_max in 0..all.len() {
            let file = whole(bytes_max as u64);
            assert!(file.len() <= bytes_max && all.starts_with(&file));
            // Removes one block from the end, using its trailing length.
            let length = file.last_chunk::<4>().map_or(0, |&word| u32::from_le_bytes(word));
            let begin = file.len() - length as usize;
            assert_eq!(file.get(begin + 4..begin + 8), file.last_chunk::<4>().map(|w| &w[..]));
        }
    }

    #[test]
    fn nobody_but_the_owner_may_read_a_capture() {
        use std::os::unix::fs::PermissionsExt;
        let name = format!("axon-capture-mode-{}.pcapng", std::process::id());
        let options = CaptureOptions::to(std::env::temp_dir().join(name));
        drop(Writer::create(&options).unwrap());
        let file = std::fs::metadata(&options.path).unwrap();
        std::fs::remove_file(&options.path).unwrap();
        assert_eq!((file.permissions().mode() & 0o777, file.len()), (0o600, 28));
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_not_half_a_block() {
        let mut writer = Writer::new(Vec::new(), 100, 1 << 20).unwrap();
        let name = "p".repeat(256);
        let record = |writer: &mut Writer<Vec<u8>>, name: &str| {
            writer.record((0, name), LinkType::ETHERNET, Direction::Inbound, 0, &[1; 60])
        };
        let error = record(&mut writer, &name).unwrap_err();
        assert_eq!(error.to_string(), "a port's name of 256 bytes; at most 255");
        assert_eq!(writer.out.len(), 28, "the section header and nothing else");
        record(&mut writer, &name[1..]).unwrap();
    }
}
