//! Compiles each `bpf/NAME.bpf.c` with clang, and packs the object into OUT_DIR, as `NAME.bpf.o.z`: a quarter of its bytes.
//!
//! libbpf's own headers come from the crate that builds libbpf, so that the two agree.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// A tracepoint's parameters are counted by their place: those in front of one that is used have to be there.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    if let Err(why) = compile_all() {
        println!("cargo::error={why}");
    }
}

fn compile_all() -> Result<(), String> {
    let var = |name: &str| std::env::var(name).map_err(|e| format!("{name}: {e}"));
    let include = var("DEP_BPF_INCLUDE")?;
    let out = PathBuf::from(var("OUT_DIR")?);
    // libbpf's name of the architecture whose registers `pt_regs` are.
    let arch = match var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => {
            return Err(format!("no BPF programs for {other}: build with --no-default-features"));
        }
    };
    // The folders of this build are in no object: the same source gives the same bytes everywhere.
    let folders = [(var("CARGO_MANIFEST_DIR")?, "rxpath-bpf"), (include.clone(), "libbpf")]
        .map(|(folder, name)| format!("-ffile-prefix-map={folder}={name}"));
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let strip = of_clang(&clang, "llvm-strip");
    let files = std::fs::read_dir("bpf").map_err(|e| format!("bpf: {e}"))?;
    let paths = files.map(|file| file.map(|file| file.path())).collect::<Result<Vec<_>, _>>();
    for source in paths.map_err(|e| format!("bpf: {e}"))? {
        let Some(name) = source.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(probe) = name.strip_suffix(".bpf.c") else { continue };
        let object = out.join(format!("{probe}.bpf.o"));
        let done = Command::new(&clang)
            .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3"])
            .args(WARNINGS)
            .args(&folders)
            .args([&format!("-D__TARGET_ARCH_{arch}"), "-I", "bpf", "-isystem", &include, "-c"])
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status()
            .map_err(|e| {
                format!(
                    "cannot run {clang} ({e}): the BPF programs need clang 12 or newer \
                     (Debian: apt-get install clang), or build with --no-default-features"
                )
            })?;
        if !done.success() {
            return Err(format!("{clang} cannot compile {}", source.display()));
        }
        strip_debug(&strip, &object);
        pack(&object).map_err(|e| format!("{}: {e}", object.display()))?;
    }
    Ok(())
}

/// libbpf needs BTF, and nobody reads the DWARF: a third of the bytes. Where the program is missing, they stay.
fn strip_debug(strip: &str, object: &Path) {
    let why = match Command::new(strip).arg("--strip-debug").arg(object).status() {
        Ok(done) if done.success() => return,
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Ok(done) => done.to_string(),
        Err(error) => error.to_string(),
    };
    println!("cargo::warning={strip} cannot strip {}: {why}", object.display());
}

fn pack(object: &Path) -> io::Result<()> {
    let mut packed =
        ZlibEncoder::new(File::create(object.with_extension("o.z"))?, Compression::best());
    io::copy(&mut File::open(object)?, &mut packed)?;
    packed.finish().map(drop)
}

/// The path of a program of clang's own LLVM, or its name where clang does not know it.
fn of_clang(clang: &str, program: &str) -> String {
    let said = Command::new(clang).arg(format!("--print-prog-name={program}")).output();
    said.ok()
        .and_then(|said| String::from_utf8(said.stdout).ok())
        .map_or_else(|| program.into(), |path| path.trim().to_owned())
}
