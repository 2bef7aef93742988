//! The same interface in a build without BPF: every call returns an error.

use std::os::fd::{BorrowedFd, OwnedFd};

use rxpath_host::HostError;

use super::{Give, MapEntry, ObjectSpec, ProgramState, Sizes, Words};
use crate::cost::CostMeter;

/// Never there in this build.
#[derive(Debug)]
pub struct Loaded {
    never: std::convert::Infallible,
}

impl Loaded {
    /// **Errors** always: this build has no BPF programs.
    pub fn load(
        spec: &ObjectSpec,
        _constants: &[u8],
        _sizes: Sizes<'_>,
    ) -> Result<Self, HostError> {
        Err(not_built(&format!("probe {}", spec.name)))
    }
}

/// Methods of a value that is never there.
macro_rules! never {
    (mut: $($name:ident(&mut $self:ident $(, $arg:ident: $type:ty)*) $(-> $out:ty)?;)*) => {
        impl Loaded {$(
            /// Never called.
            pub fn $name(&mut $self $(, $arg: $type)*) $(-> $out)? {
                match $self.never {}
            }
        )*}
    };
    ($($name:ident(&$self:ident $(, $arg:ident: $type:ty)*) $(-> $out:ty)?;)*) => {
        impl Loaded {$(
            /// Never called.
            pub fn $name(&$self $(, $arg: $type)*) $(-> $out)? {
                match $self.never {}
            }
        )*}
    };
}

never! { mut:
    attach(&mut self) -> Result<(), HostError>;
    attach_some(&mut self, _names: &[&str]) -> Result<(), HostError>;
    detach_some(&mut self, _names: &[&str]);
}

never! {
    is_attached(&self, _name: &str) -> bool;
    begin(&self) -> Result<(), HostError>;
    pause(&self) -> Result<(), HostError>;
    time_one_of(&self, _runs: u32) -> Result<(), HostError>;
    name(&self) -> &'static str;
    programs(&self) -> &[ProgramState];
    links(&self) -> Result<Vec<(&'static str, OwnedFd)>, HostError>;
    run_on(&self, _program: &str, _cpu: u32) -> Result<(), HostError>;
    iterate(&self, _program: &str, _map: Option<&str>) -> Result<Vec<u8>, HostError>;
    each(&self, _map: &str, _give: Give<'_>) -> Result<(), HostError>;
    entries(&self, _map: &str) -> Result<Vec<MapEntry>, HostError>;
    put(&self, _map: &str, _key: &[u8], _value: &[u8]) -> Result<(), HostError>;
    remove(&self, _map: &str, _key: &[u8]) -> Result<(), HostError>;
    take(&self, _map: &str, _key: &[u8]) -> Result<Option<Vec<u8>>, HostError>;
    run_live(&self, _program: &str, _frame: &[u8], _of: (u32, u32, u32)) -> Result<(), HostError>;
    words(&self, _map: &str) -> Result<Words, HostError>;
    value(&self, _map: &str, _index: u32) -> Result<Vec<u8>, HostError>;
    values(&self, _map: &str, _index: u32) -> Result<Vec<Vec<u8>>, HostError>;
    id(&self, _program: &str) -> Result<u32, HostError>;
    attach_xdp(&self, _program: &str, _device: u32, _flags: u32) -> Result<OwnedFd, HostError>;
    drain(&self, _map: &str, _each: &mut dyn FnMut(&[u8])) -> Result<(), HostError>;
    meter(&self) -> CostMeter;
    map_bytes(&self) -> u64;
}

fn not_built(what: &str) -> HostError {
    let needs = "a build with BPF (this one was built with --no-default-features, without clang)";
    HostError::unsupported(what, needs)
}

/// **Errors** always: this build has no BPF programs.
pub fn read_iterator(_link: BorrowedFd<'_>) -> Result<Vec<u8>, HostError> {
    Err(not_built("run an iterator"))
}

/// **Errors** always: this build has no BPF programs.
pub fn parameters(event: &str) -> Result<usize, HostError> {
    Err(not_built(&format!("look up the tracepoint {event}")))
}

/// **Errors** always: this build has no BPF programs.
pub fn enumerators(name: &str) -> Result<Vec<(u32, String)>, HostError> {
    Err(not_built(&format!("look up the enum {name}")))
}
