//! Which programs of an object this kernel accepts, each checked separately.

use std::io::Read;

use flate2::read::ZlibDecoder;
use libbpf_rs::{ErrorKind, ObjectBuilder, OpenObject};
use rxpath_core::Fact;
use rxpath_host::HostError;
use rxpath_host::error::fact;

use super::{ObjectSpec, PREFIX, ProgramSpec, log, types};

/// Opens the object, and leaves only the wanted programs to load.
pub fn open(spec: &ObjectSpec, wanted: &dyn Fn(&str) -> bool) -> Result<OpenObject, HostError> {
    let mut bytes = Vec::new();
    #[expect(
        clippy::expect_used,
        reason = "the build script wrote it, and each test with BPF reads it"
    )]
    ZlibDecoder::new(spec.packed).read_to_end(&mut bytes).expect("built-in object");
    let mut object = ObjectBuilder::default()
        .name(spec.name)
        .and_then(|builder| builder.open_memory(&bytes))
        .map_err(|e| refused(&format!("open the BPF object {}", spec.name), &e))?;
    for mut program in object.progs_mut() {
        let name = program.name().to_str().and_then(|name| name.strip_prefix(PREFIX));
        let wanted = name.is_some_and(wanted);
        program.set_autoload(wanted);
    }
    Ok(object)
}

/// For each program whether the kernel has its tracepoint.
pub fn with_hooks(spec: &ObjectSpec) -> Result<Vec<(ProgramSpec, Fact<()>)>, HostError> {
    let btf = types::kernel()?;
    let has = |hook: &str| match hook.split_once('/') {
        Some(("iter", what)) => types::has_iterator(&btf, what),
        _ => types::tracepoint(&btf, hook.rsplit('/').next().unwrap_or(hook)).is_some(),
    };
    Ok(spec
        .programs
        .iter()
        .map(|program| match program.hook {
            Some(hook) if !has(hook) => {
                let kind = if hook.starts_with("iter/") { "" } else { "tracepoint " };
                (*program, Fact::absent(format!("this kernel has no {kind}{hook}")))
            }
            _ => (*program, Fact::ok(())),
        })
        .collect())
}

/// Loads one program alone, and says why not.
pub fn alone(spec: &ObjectSpec, program: &ProgramSpec) -> Fact<()> {
    log::keep();
    let opened = open(spec, &|name| name == program.name);
    let what = format!("load {}", program.name);
    fact(opened.and_then(|opened| opened.load().map(drop).map_err(|e| refused(&what, &e))))
}

/// A refusal of libbpf or the kernel, by what can be done about it.
pub fn refused(what: &str, error: &libbpf_rs::Error) -> HostError {
    let why = log::reason().unwrap_or_else(|| error.to_string());
    judged(what, error.kind(), log::verdict(), &why)
}

/// The verifier also refuses with EACCES: no capability helps then.
fn judged(what: &str, kind: ErrorKind, verdict: Option<String>, why: &str) -> HostError {
    match (verdict, kind) {
        (Some(said), _) => HostError::Unsupported {
            what: what.into(),
            needs: format!("a kernel whose verifier accepts it (this one says: {said})"),
        },
        (None, ErrorKind::PermissionDenied) => HostError::Denied {
            what: what.into(),
            capability: format!("CAP_BPF and CAP_PERFMON, or root outside lockdown ({why})"),
        },
        (None, _) => match lacks(why) {
            Some(errno) => HostError::kernel(what, errno),
            None => HostError::unsupported(what, format!("a kernel that accepts it ({why})")),
        },
    }
}

/// What this process or machine has too little of, or is too busy for, in libbpf's words or the C library's: no other kernel
/// would help.
fn lacks(why: &str) -> Option<i32> {
    let lacking = [
        // First, because its words begin with the next one's.
        (libc::ENFILE, "-ENFILE", "Too many open files in system"),
        (libc::EMFILE, "-EMFILE", "Too many open files"),
        (libc::ENOMEM, "-ENOMEM", "Cannot allocate memory"),
        // A verifier that was interrupted, a program or map that somebody else is changing.
        (libc::EAGAIN, "-EAGAIN", "Resource temporarily unavailable"),
        (libc::EBUSY, "-EBUSY", "Device or resource busy"),
    ];
    let said = |(_, name, words): &&(i32, &str, &str)| why.contains(name) || why.contains(words);
    lacking.iter().find(said).map(|(errno, ..)| *errno)
}

/// Name and sizes of the maps of an object that is not loaded; variables and constants are none.
#[cfg(test)]
pub fn maps(spec: &ObjectSpec) -> Result<Vec<(String, u32, u32)>, HostError> {
    let object = open(spec, &|_| true)?;
    let of = |map: &libbpf_rs::OpenMap<'_>| {
        let name = map.name().to_string_lossy().into_owned();
        (name, map.key_size(), map.value_size())
    };
    let all = object.maps().map(|map| of(&map));
    Ok(all.filter(|(name, ..)| !name.contains('.')).collect())
}

/// Names of the programs of an object that is not loaded.
#[cfg(test)]
pub fn programs(spec: &ObjectSpec) -> Result<Vec<String>, HostError> {
    let object = open(spec, &|_| true)?;
    Ok(object.progs().map(|program| program.name().to_string_lossy().into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_too_little_of_is_no_matter_of_the_kernel() {
        for why in ["map 'tasks': failed to create: -EMFILE", "Too many open files (os error 24)"] {
            let error = judged("load account", ErrorKind::Other, None, why).to_string();
            assert!(error.contains("Too many open files"), "{error}");
            assert!(!error.contains("a kernel that accepts it"), "{error}");
        }
        for why in ["map 'tasks': failed to create: -ENOMEM", "failed to load: -EAGAIN"] {
            let error = judged("load account", ErrorKind::Other, None, why);
            assert!(error.is_passing(), "{error}");
        }
    }

    #[test]
    fn what_the_verifier_refuses_is_no_missing_capability() {
        let denied = ErrorKind::PermissionDenied;
        let said = Some("R1 invalid mem access 'scalar'".to_owned());
        let error = judged("load napi_poll", denied, said, "x");
        assert!(matches!(error, HostError::Unsupported { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("invalid mem access") && !text.contains("CAP_"), "{text}");
        let error = judged("load napi_poll", denied, None, "failed to load: -EPERM");
        assert!(matches!(error, HostError::Denied { .. }), "{error}");
    }
}
