//! Environment that must be equal where a snapshot is made and restored: the program, the address
//! of its code, and the processor's features.

use nix::sys::personality::{self, Persona};
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::Command;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Read unit in bytes.
const CHUNK: usize = 1 << 16;

/// Re-executes this program with its arguments, without address randomisation, if its code has a
/// random address: values of a snapshot point to it. Must be called first.
///
/// # Errors
/// The kernel does not allow it (personality(2)), as in some containers.
pub fn fix_addresses() -> io::Result<()> {
    let persona = personality::get()?;
    if persona.contains(Persona::ADDR_NO_RANDOMIZE) {
        return Ok(());
    }
    personality::set(persona | Persona::ADDR_NO_RANDOMIZE)?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    command.arg0(arguments.next().unwrap_or_default());
    Err(command.args(arguments).exec())
}

/// Environment that must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// XXH3 (64 bits) of the program's build ID; of all of its file, if the linker gave it none.
    pub program: u64,
    /// Address of its code.
    pub code: u64,
    /// XXH3 of the processor's features.
    pub processor: u64,
}

impl Machine {
    /// Returns the environment of this process.
    ///
    /// # Errors
    /// /proc cannot be read.
    pub fn this() -> io::Result<Machine> {
        let code = (fix_addresses as fn() -> io::Result<()>) as usize as u64;
        Ok(Machine { program: program()?, code, processor: processor()? })
    }
}

/// Returns the XXH3 of the rest of the input.
pub fn hash_of(mut from: impl Read) -> io::Result<u64> {
    let (mut hash, mut chunk) = (Xxh3::new(), vec![0; CHUNK]);
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(hash.digest()),
            bytes => hash.update(&chunk[..bytes]),
        }
    }
}

/// Returns the identity of this build of the program.
fn program() -> io::Result<u64> {
    let mut file = File::open("/proc/self/exe")?;
    let cache = ReadCache::new(&mut file);
    if let Ok(Some(build_id)) = build_id(&cache) {
        return Ok(xxh3_64(build_id));
    }
    file.rewind()?;
    hash_of(file)
}

/// Returns the build ID that the linker has put into a note, without parsing the symbols.
fn build_id<'a>(program: impl ReadRef<'a>) -> object::read::Result<Option<&'a [u8]>> {
    let header = FileHeader64::<Endianness>::parse(program)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, program)? {
        let Some(mut notes) = segment.notes(endian, program)? else { continue };
        while let Some(note) = notes.next()? {
            if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
                return Ok(Some(note.desc()));
            }
        }
    }
    Ok(None)
}

/// Returns the instruction sets of the first processor, as the kernel lists them; libraries select
/// their code by them once.
fn processor() -> io::Result<u64> {
    for line in BufReader::new(File::open("/proc/cpuinfo")?).lines() {
        let line = line?;
        if line.starts_with("flags") || line.starts_with("Features") {
            return Ok(xxh3_64(line.as_bytes()));
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Object;

    #[test]
    fn the_build_id_is_the_one_that_the_sections_have() {
        let mut file = File::open("/proc/self/exe").expect("this program");
        let cache = ReadCache::new(&mut file);
        let program = object::File::parse(&cache).expect("an ELF file");
        let known = program.build_id().expect("sections");
        if known.is_none() {
            println!("not tried: this linker writes none");
        }
        assert_eq!(build_id(&cache).expect("segments"), known);
    }
}
