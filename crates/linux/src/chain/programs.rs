//! Programs of `ebpf/bench.bpf.c`, by name.

use super::devices::RIGHT_INDEX;
use anyhow::{Context, Result};
use aya::maps::{Array, DevMap};
use aya::programs::{
    ProgramError, SchedClassifier, TcAttachType, TestRun, TestRunAttrs, TestRunOptions,
    TestRunResult, Xdp, XdpMode,
};
use aya::{Ebpf, EbpfLoader};

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../../ebpf/built/bench.o");

/// Number of 8-byte words that the generator writes at the start of each frame.
const START_WORDS: usize = 8;
/// Shortest generated frame, in bytes.
pub(super) const START_BYTES: usize = 8 * START_WORDS;
/// Frames per batch of the generator.
const BATCH: u32 = 64;

/// Loaded program.
pub struct Program {
    ebpf: Ebpf,
    name: &'static str,
}

impl Program {
    /// Loads the program of this name, which redirects to device `ifindex`.
    ///
    /// # Errors
    /// There is no such program, or no permission to load it.
    pub fn load(name: &'static str, ifindex: u32) -> Result<Program> {
        Program::with_start(name, ifindex, [0; START_WORDS], 0)
    }

    /// Loads a generator of frames that begin with the first bytes of `frame`. The device is
    /// searched in the thread's namespace.
    pub(super) fn generator(frame: &[u8]) -> Result<Program> {
        let words = frame.as_chunks().0;
        let start = words.first_chunk().context("a frame is too short")?.map(u64::from_ne_bytes);
        let tail = words.get(2 * START_WORDS - 1).map_or(0, |word| u64::from_ne_bytes(*word));
        Program::with_start("xdp_generate", RIGHT_INDEX, start, tail)
    }

    fn with_start(
        name: &'static str,
        ifindex: u32,
        start: [u64; START_WORDS],
        tail: u64,
    ) -> Result<Program> {
        let mut ebpf = EbpfLoader::new()
            .override_global("IFINDEX", &ifindex, true)
            .override_global("START", &start, true)
            .override_global("TAIL", &tail, true)
            .load(OBJECT)?;
        let program = ebpf.program_mut(name).context("no such program")?;
        if let Ok(program) = <&mut Xdp>::try_from(&mut *program) {
            program.load()?;
        } else {
            <&mut SchedClassifier>::try_from(program)?.load()?;
        }
        Ok(Program { ebpf, name })
    }

    /// Sets the target device of a program that redirects by map. The device is in the thread's
    /// namespace.
    pub(super) fn set_device(&mut self) -> Result<()> {
        let map = self.ebpf.map_mut("device").context("no such map")?;
        Ok(DevMap::try_from(map)?.set(0, RIGHT_INDEX, None, 0)?)
    }

    /// Attaches the program to a device in the thread's namespace until this value is dropped.
    pub(super) fn attach(&mut self, device: &str) -> Result<()> {
        let program = self.ebpf.program_mut(self.name).context("no such program")?;
        if let Ok(program) = <&mut Xdp>::try_from(&mut *program) {
            program.attach(device, XdpMode::Driver)?;
        } else {
            let program = <&mut SchedClassifier>::try_from(program)?;
            program.attach(device, TcAttachType::Ingress)?;
        }
        Ok(())
    }

    /// Returns the number of frames that the end of a chain has received.
    pub(super) fn taken(&self) -> Result<u64> {
        let map = self.ebpf.map(".bss").context("no such map")?;
        Ok(Array::<_, u64>::try_from(map)?.get(&0, 0)?)
    }

    /// Sends `frames` frames through the devices in the thread's namespace.
    pub(super) fn send(&mut self, frame: &[u8], frames: u32) -> Result<()> {
        let attrs = TestRunAttrs::new().xdp_live_frames(BATCH);
        let data_in = Some(frame);
        let options = TestRunOptions { data_in, repeat: frames, attrs, ..Default::default() };
        self.test_run(options)?;
        Ok(())
    }

    /// Runs the program on `frame`, `repeat` times, without sending anything.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn run(&mut self, frame: &[u8], repeat: u32) -> Result<TestRunResult> {
        let mut out = [0; 1024];
        let (data_in, data_out) = (Some(frame), Some(&mut out[..]));
        Ok(self.test_run(TestRunOptions { data_in, data_out, repeat, ..Default::default() })?)
    }

    fn test_run(&mut self, options: TestRunOptions<'_>) -> Result<TestRunResult, ProgramError> {
        let program = self.ebpf.program_mut(self.name).ok_or(ProgramError::NotLoaded)?;
        if let Ok(program) = <&mut Xdp>::try_from(&mut *program) {
            return program.test_run(options);
        }
        <&mut SchedClassifier>::try_from(program)?.test_run(options)
    }
}
