//! What the running kernel's types say: the parameters of a tracepoint, the names of an enum.

use libbpf_rs::btf::types::{Enum, Func, FuncProto, Typedef};
use libbpf_rs::btf::{Btf, BtfType};
use rxpath_host::HostError;

/// The kernel's types.
pub fn kernel() -> Result<Btf<'static>, HostError> {
    Btf::from_vmlinux().map_err(|_| HostError::Unsupported {
        what: "read /sys/kernel/btf/vmlinux".into(),
        needs: "a kernel with CONFIG_DEBUG_INFO_BTF, and one that libbpf can read".into(),
    })
}

/// The type of a tracepoint that BPF can attach to.
///
/// **Source** include/trace/bpf_probe.h, `__DEFINE_EVENT`; kernel/bpf/verifier.c, `bpf_check_attach_target`.
pub fn tracepoint<'b>(btf: &'b Btf<'static>, event: &str) -> Option<Typedef<'b>> {
    btf.type_by_name(&format!("btf_trace_{event}"))
}

/// Whether the kernel has a BPF iterator of this name.
///
/// **Source** include/linux/bpf.h, `DEFINE_BPF_ITER_FUNC`.
pub fn has_iterator(btf: &Btf<'static>, what: &str) -> bool {
    btf.type_by_name::<Func<'_>>(&format!("bpf_iter_{what}")).is_some()
}

/// How many parameters a tracepoint passes, its own context included; 0 where the kernel has no such tracepoint.
pub fn parameters(event: &str) -> Result<usize, HostError> {
    let btf = kernel()?;
    let Some(typedef) = tracepoint(&btf, event) else { return Ok(0) };
    // A pointer to a function.
    let function: Option<BtfType<'_>> = typedef
        .next_type()
        .and_then(|pointer| pointer.next_type())
        .map(|ty| ty.skip_mods_and_typedefs());
    Ok(function.and_then(|ty| FuncProto::try_from(ty).ok()).map_or(0, |function| function.len()))
}

/// Numbers and names of an enum; empty where the kernel has none of this name.
pub fn enumerators(name: &str) -> Result<Vec<(u32, String)>, HostError> {
    let btf = kernel()?;
    let Some(found) = btf.type_by_name::<Enum<'_>>(name) else { return Ok(Vec::new()) };
    Ok(found
        .iter()
        .filter_map(|member| Some((member.value as u32, member.name?.to_str()?.to_owned())))
        .collect())
}
