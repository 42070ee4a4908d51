//! The simulated device: a shared library with the C interface of `rtl/model/device.h`.
//!
//! All unsafe code of the crate is in this file.
#![allow(unsafe_code, reason = "calls into the shared library")]

use axon_wire::HopWidth;
use libloading::Library;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// Version of the interface; that of `device.h`.
const VERSION: u32 = 2;
/// Ports in the structures of the interface.
pub const PORTS_MAX: usize = 4;
/// Bytes of the buffer of one ingress at one output, as `rtl/model/Makefile` sets them.
pub(crate) const BUFFER_BYTES: usize = 2048;
/// Routes of one port, as `rtl/model/Makefile` sets them.
pub(crate) const ROUTES: usize = 32;
/// Names the folder of the shared libraries.
const FOLDER: &str = "AXON_RTL";
/// Folder of all builds, above programs and tests.
const BUILDS: &str = "target";

/// Size of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of ports, at most [`PORTS_MAX`].
    pub ports: u32,
    /// Bits of a hop: 4, 8 or 16.
    pub hop_bits: u32,
    /// Bytes of the buffer of one ingress at one output.
    pub buffer_bytes: u32,
    /// Routes of one port, at most 32.
    pub routes: u32,
}

/// Levels of the input pins in one clock cycle, by port where there is one for each. A symbol is a
/// byte, or with [`SYMBOL_END`](crate::pins::SYMBOL_END) the end of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// GMII: received bytes.
    pub rxd: [u8; PORTS_MAX],
    /// GMII: 1 while bytes are received.
    pub rx_dv: [u8; PORTS_MAX],
    /// GMII: 1 with a byte in error.
    pub rx_er: [u8; PORTS_MAX],
    /// 1 with carrier.
    pub link_up: [u8; PORTS_MAX],
    /// Value to be written.
    pub reg_write_data: u32,
    /// Address of a register, in words.
    pub reg_address: u16,
    /// 1 to write, for one cycle.
    pub reg_write: u8,
    /// 1 to read, for one cycle.
    pub reg_read: u8,
    /// 1 to take the punted symbol of this cycle.
    pub punt_ready: u8,
    /// 1 with a symbol to inject, which is held until `inject_ready`.
    pub inject_valid: u8,
    /// The symbol.
    pub inject_symbol: u16,
}

/// Levels of the output pins in the same clock cycle, just before the edge that ends it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// GMII: bytes to be sent.
    pub txd: [u8; PORTS_MAX],
    /// GMII: 1 while bytes are sent.
    pub tx_en: [u8; PORTS_MAX],
    /// GMII: 1 with a byte in error.
    pub tx_er: [u8; PORTS_MAX],
    /// Value of the register that was read two cycles before.
    pub reg_read_data: u32,
    /// 1 with a punted symbol.
    pub punt_valid: u8,
    /// 1 if the injected symbol of this cycle is taken.
    pub inject_ready: u8,
    /// The punted symbol.
    pub punt_symbol: u16,
}

impl Outputs {
    /// Outputs of a device that does nothing.
    const NONE: Outputs = Outputs {
        txd: [0; PORTS_MAX],
        tx_en: [0; PORTS_MAX],
        tx_er: [0; PORTS_MAX],
        reg_read_data: 0,
        punt_valid: 0,
        inject_ready: 0,
        punt_symbol: 0,
    };
}

/// Errors in loading the simulated device.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The shared library is in none of the folders.
    #[error("{name} is not in {}: build it with `make rtl-model`, or set {FOLDER} to its folder",
        .folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", "))]
    Missing {
        /// Name of the file.
        name: String,
        /// Folders that were searched.
        folders: Vec<PathBuf>,
    },
    /// The file is no such shared library.
    #[error("{}: {reason}; build it again with `make rtl-model`", .path.display())]
    Unusable {
        /// Path of the file.
        path: PathBuf,
        /// The reason, as a whole.
        reason: String,
    },
    /// The device has other registers.
    #[error(
        "the registers of the device are of another version: build it again with \
        `make rtl-model`"
    )]
    Registers,
}

/// Device of the shared library.
#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

/// Functions of the shared library.
struct Functions {
    free: unsafe extern "C" fn(*mut Raw),
    run_all_clocks: unsafe extern "C" fn(*mut Raw),
    step: unsafe extern "C" fn(*mut Raw, *const Inputs, *mut Outputs),
    step_many: unsafe extern "C" fn(*mut Raw, *const Inputs, *mut Outputs, u64) -> u64,
}

/// One simulated device.
pub struct Model {
    device: NonNull<Raw>,
    functions: Functions,
    size: Size,
    /// Dropped last: the functions are in it.
    _library: Library,
}

// SAFETY: the device belongs to this value alone, shares no state with others, and depends on no
// thread (`device.h`).
unsafe impl Send for Model {}

impl Model {
    /// Loads the shared library for this hop width and makes a device, which has been reset.
    ///
    /// The library is in the folder named by the environment variable `AXON_RTL`, or else beside
    /// the program, or in `target/rtl` if the program is below that `target`. No other folder is
    /// searched: what is loaded runs with the rights of the program.
    ///
    /// # Errors
    /// The library is missing, or has another interface or hop width.
    pub fn load(width: HopWidth) -> Result<Model, ModelError> {
        let name = format!("libaxon_rtl_{}.so", width.bits());
        let folders = folders(std::env::var_os(FOLDER), std::env::current_exe().ok().as_deref());
        let found = folders.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
        match found {
            Some(path) => Model::open(&path, width)
                .map_err(|reason| ModelError::Unusable { path: path.clone(), reason }),
            None => Err(ModelError::Missing { name, folders }),
        }
    }

    fn open(path: &Path, width: HopWidth) -> Result<Model, String> {
        // SAFETY: the library is ours; what runs when it is loaded are C++ constructors of
        // constants.
        let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
        let version: unsafe extern "C" fn() -> u32 = function(&library, "axon_rtl_version")?;
        // SAFETY: as declared in every version of `device.h`.
        let version = unsafe { version() };
        if version != VERSION {
            return Err(format!("its interface has version {version}, expected {VERSION}"));
        }
        let size: unsafe extern "C" fn() -> Size = function(&library, "axon_rtl_size")?;
        let new: unsafe extern "C" fn() -> *mut Raw = function(&library, "axon_rtl_new")?;
        let functions = Functions {
            free: function(&library, "axon_rtl_free")?,
            run_all_clocks: function(&library, "axon_rtl_run_all_clocks")?,
            step: function(&library, "axon_rtl_step")?,
            step_many: function(&library, "axon_rtl_step_many")?,
        };
        // SAFETY: as declared in `device.h`, whose version was checked.
        let size = unsafe { size() };
        let expected = Size {
            ports: PORTS_MAX as u32,
            hop_bits: width.bits() as u32,
            buffer_bytes: BUFFER_BYTES as u32,
            routes: ROUTES as u32,
        };
        if size != expected {
            return Err(format!("it is of another size, {size:?}, expected {expected:?}"));
        }
        // SAFETY: as above.
        let device = NonNull::new(unsafe { new() }).ok_or("no memory for a device")?;
        Ok(Model { device, functions, size, _library: library })
    }

    /// Returns the size of the device.
    pub const fn size(&self) -> Size {
        self.size
    }

    /// Makes the device run all its clocks from now on, also those of parts in which nothing
    /// changes. That makes it slower, and no difference at the pins.
    pub fn run_all_clocks(&mut self) {
        // SAFETY: the device is alive.
        unsafe { (self.functions.run_all_clocks)(self.device.as_ptr()) };
    }

    /// Runs one clock cycle and returns the output pins in it.
    #[inline]
    pub fn step(&mut self, inputs: &Inputs) -> Outputs {
        let mut outputs = Outputs::NONE;
        // SAFETY: the device is alive, and both structures are those of `device.h`.
        unsafe { (self.functions.step)(self.device.as_ptr(), inputs, &mut outputs) };
        outputs
    }

    /// Runs up to `cycles` clock cycles with these inputs, which must have no frame, request or
    /// symbol; ends early with a cycle in which a port sends or a symbol is punted. Returns the
    /// number of cycles and the output pins in the last one.
    pub fn step_many(&mut self, inputs: &Inputs, cycles: u64) -> (u64, Outputs) {
        let mut outputs = Outputs::NONE;
        let device = self.device.as_ptr();
        // SAFETY: as in `step`.
        let done = unsafe { (self.functions.step_many)(device, inputs, &mut outputs, cycles) };
        (done, outputs)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: the device came from `axon_rtl_new` and is not used again.
        unsafe { (self.functions.free)(self.device.as_ptr()) };
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Returns a function of the library. `T` must be its type in `device.h`.
fn function<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: the callers in this file name each function with its type.
    unsafe { library.get::<T>(name) }.map(|symbol| *symbol).map_err(|error| error.to_string())
}

/// Returns the folders to search.
fn folders(named: Option<OsString>, program: Option<&Path>) -> Vec<PathBuf> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        // With a slash in it: the loader searches folders of its own for a bare name.
        return vec![std::path::absolute(&named).unwrap_or_else(|_| named.into())];
    }
    let Some(beside) = program.and_then(Path::parent) else { return Vec::new() };
    let builds = beside.ancestors().find(|folder| folder.ends_with(BUILDS));
    [beside.to_owned()].into_iter().chain(builds.map(|folder| folder.join("rtl"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_reported_with_its_folders_and_the_way_out() {
        let search = |program| folders(None, Some(Path::new(program)));
        let built = [PathBuf::from("/t/target/release"), PathBuf::from("/t/target/rtl")];
        assert_eq!(search("/t/target/release/axon"), built);
        assert_eq!(search("/t/target/debug/deps/all")[1], built[1]);
        assert_eq!(search("/tmp/bin/axon"), [PathBuf::from("/tmp/bin")]);
        assert!(folders(Some("".into()), None).is_empty());
        assert!(folders(Some("n".into()), None)[0].is_absolute());
        let named = self::folders(Some("/n".into()), None);
        let text = ModelError::Missing { name: "libaxon_rtl_8.so".into(), folders: named };
        let expected = "libaxon_rtl_8.so is not in /n: build it with `make rtl-model`, or set \
                        AXON_RTL to its folder";
        assert_eq!(text.to_string(), expected);
    }
}
