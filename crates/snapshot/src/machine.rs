//! What has to be the same where a snapshot is made and where it is restored: the program, where
//! its code lies, and what the processor can do.

use nix::sys::personality::{self, Persona};
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::Command;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes read at once.
const CHUNK: usize = 1 << 16;

/// Starts this program again, in its place and with its arguments, if its code lies at an address
/// by chance: values of a snapshot point to it. Call it before anything else has happened.
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

/// What has to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// XXH3 (64 bits) of the program's build ID; of all of its file, if the linker gave it none.
    pub program: u64,
    /// Where its code lies.
    pub code: u64,
    /// XXH3 of what the processor says that it can do.
    pub processor: u64,
}

impl Machine {
    /// That of this process.
    ///
    /// # Errors
    /// /proc cannot be read.
    pub fn this() -> io::Result<Machine> {
        let code = (fix_addresses as fn() -> io::Result<()>) as usize as u64;
        Ok(Machine { program: program()?, code, processor: processor()? })
    }
}

/// XXH3 of all that is left to read.
pub fn hash_of(mut from: impl Read) -> io::Result<u64> {
    let (mut hash, mut chunk) = (Xxh3::new(), vec![0; CHUNK]);
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(hash.digest()),
            bytes => hash.update(&chunk[..bytes]),
        }
    }
}

/// What this build of the program is known by.
fn program() -> io::Result<u64> {
    let mut file = File::open("/proc/self/exe")?;
    let cache = ReadCache::new(&mut file);
    if let Ok(Some(build_id)) = build_id(&cache) {
        return Ok(xxh3_64(build_id));
    }
    file.rewind()?;
    hash_of(file)
}

/// What the linker has put into a note, without a look at the symbols.
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

/// The instructions of the first processor, as the kernel lists them; libraries choose their code
/// by them once.
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
