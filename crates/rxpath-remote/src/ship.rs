//! The binary's way to a host: under its hash, checked before each start.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::destination::{Destination, Directory};
use crate::refusal::{HostRefusal, RefusingHost, refusal};
use crate::{scripts, ssh};

/// How often a slow transfer says how far it is.
const SAY_EACH: Duration = Duration::from_secs(5);

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// SHA-256 of a file, in hexadecimal.
pub fn hash_of(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    io::copy(&mut File::open(path)?, &mut Digesting(&mut digest))?;
    Ok(hex(&digest.finalize()))
}

/// Feeds a digest.
struct Digesting<'a>(&'a mut Sha256);

impl Write for Digesting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stores a file on a host under its hash; `sent` gets the number of bytes every few seconds.
///
/// # Errors
/// What ssh or the host said against it.
pub fn send(
    alias: &str,
    destination: &Destination,
    file: &Path,
    (hash, dir): (&str, Option<&Directory>),
    sent: &mut dyn FnMut(u64),
) -> Result<(), HostRefusal> {
    let failed =
        |text: String| HostRefusal { text: format!("{alias}: {text}"), hint: String::new() };
    let mut command = ssh::store(destination, hash, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| failed(format!("cannot start ssh: {error}")))?;
    let mut from = File::open(file)
        .map_err(|error| failed(format!("cannot read {}: {error}", file.display())))?;
    let copied = child.stdin.take().map(|mut pipe| copy(&mut from, &mut pipe, SAY_EACH, sent));
    let output = child
        .wait_with_output()
        .map_err(|error| failed(format!("cannot wait for ssh: {error}")))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if printed.lines().any(|line| line.trim() == scripts::STORED) {
        return Ok(());
    }
    let place = printed.lines().find_map(|line| line.strip_prefix(scripts::NOT_STORED));
    let said = String::from_utf8_lossy(&output.stderr);
    let said = match (said.trim(), copied) {
        ("", Some(Err(error))) => error.to_string(),
        ("", _) => "the copy of rxpath did not arrive whole".to_owned(),
        (said, _) => said.to_owned(),
    };
    let ssh = destination.as_str();
    Err(refusal(&RefusingHost { alias, ssh, dir: place, ..RefusingHost::default() }, &said))
}

/// Copies everything, and says each so often how many bytes that were.
fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    each: Duration,
    said: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let (mut buffer, mut copied, mut last) = (vec![0_u8; 64 << 10], 0, Instant::now());
    loop {
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read])?;
        copied += read as u64;
        if last.elapsed() >= each {
            said(copied);
            last = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_that_takes_long_says_how_far_it_is() {
        let bytes = vec![7_u8; 200_000];
        let copied = |each: Duration| {
            let (mut to, mut said) = (Vec::new(), Vec::new());
            copy(&mut bytes.as_slice(), &mut to, each, &mut |sent| said.push(sent)).unwrap();
            assert_eq!(to, bytes);
            said
        };
        assert_eq!(copied(Duration::ZERO), [65_536, 131_072, 196_608, 200_000]);
        assert!(copied(Duration::from_secs(3600)).is_empty());
    }

    #[test]
    fn a_file_has_the_hash_of_its_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(b"abc"), wanted);
        assert_eq!(hash_of(file.path()).unwrap(), wanted);
    }
}
