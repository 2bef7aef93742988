//! The file of a program, for a host that lacks it: its hash, and its bytes.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::scripts;

/// How often a slow transfer says how far it is.
const SAY_EACH: Duration = Duration::from_secs(5);

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    let digest: &[u8] = &Sha256::digest(bytes);
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// SHA-256 of a file, in hexadecimal.
pub fn hash_of(path: &Path) -> io::Result<String> {
    fs::read(path).map(|bytes| hash(&bytes))
}

/// The file of a program, opened to be sent to a host.
#[derive(Debug)]
pub struct Shipment {
    file: File,
    /// Its size. **Unit** bytes.
    pub bytes: u64,
    hash: String,
}

impl Shipment {
    /// Opens the file, which has this SHA-256 in hexadecimal.
    ///
    /// # Errors
    /// Which file cannot be read, and why.
    pub fn of(path: &Path, hash: &str) -> Result<Self, String> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) =
            opened.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(Self { file, bytes, hash: hash.to_owned() })
    }

    /// The line that offers it to a host that needs a program.
    pub fn offer(&self) -> String {
        scripts::offer(self.bytes, &self.hash)
    }

    /// Writes all of it; `sent` gets the number of bytes every few seconds.
    ///
    /// # Errors
    /// Of reading or writing; [`io::ErrorKind::UnexpectedEof`] if the file has become shorter.
    pub fn send(self, to: &mut impl Write, sent: &mut dyn FnMut(u64)) -> io::Result<()> {
        let Self { file, bytes, .. } = self;
        let copied = copy(&mut file.take(bytes), to, SAY_EACH, sent)?;
        if copied == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// Copies everything, and says each so often how many bytes that were; all of them.
fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    each: Duration,
    said: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    let (mut buffer, mut copied, mut last) = (vec![0_u8; 64 << 10], 0, Instant::now());
    loop {
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            return Ok(copied);
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
            let copied =
                copy(&mut bytes.as_slice(), &mut to, each, &mut |sent| said.push(sent)).unwrap();
            assert_eq!((copied, &to), (200_000, &bytes));
            said
        };
        assert_eq!(copied(Duration::ZERO), [65_536, 131_072, 196_608, 200_000]);
        assert!(copied(Duration::from_secs(3600)).is_empty());
    }

    #[test]
    fn a_file_is_sent_as_long_as_it_was_offered() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        let opened = || Shipment::of(file.path(), &hash(b"abc")).unwrap();
        assert_eq!(opened().offer(), format!("3 {}\n", hash(b"abc")));
        let sent = |shipment: Shipment| {
            let mut to = Vec::new();
            let end = shipment.send(&mut to, &mut |_| {}).map_err(|error| error.kind());
            (end, to)
        };
        assert_eq!(sent(opened()), (Ok(()), b"abc".to_vec()));
        let [longer, shorter] = [opened(), opened()];
        std::fs::write(file.path(), b"abcdef").unwrap();
        assert_eq!(sent(longer), (Ok(()), b"abc".to_vec()));
        std::fs::write(file.path(), b"ab").unwrap();
        assert_eq!(sent(shorter), (Err(io::ErrorKind::UnexpectedEof), b"ab".to_vec()));
        let missing = Shipment::of(Path::new("/nonexistent/rxpath"), "").unwrap_err();
        assert!(missing.starts_with("cannot read /nonexistent/rxpath: No such file"), "{missing}");
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
