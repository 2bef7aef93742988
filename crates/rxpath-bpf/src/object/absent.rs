//! The same interface in a build without BPF: every call returns an error.

use rxpath_host::HostError;

use super::{Entry, ObjectSpec, ProgramState, Sizes};
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

    /// Never called.
    pub fn attach(&mut self) -> Result<(), HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn attach_some(&mut self, _names: &[&str]) -> Result<(), HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn is_attached(&self, _name: &str) -> bool {
        match self.never {}
    }

    /// Never called.
    pub fn detach_some(&mut self, _names: &[&str]) {
        match self.never {}
    }

    /// Never called.
    pub fn begin(&self) -> Result<(), HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn pause(&self) -> Result<(), HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn programs(&self) -> &[ProgramState] {
        match self.never {}
    }

    /// Never called.
    pub fn links(&self) -> Result<Vec<(&'static str, std::os::fd::OwnedFd)>, HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn run_on(&self, _program: &str, _cpu: u32) -> Result<u32, HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn iterate(&self, _program: &str) -> Result<Vec<u8>, HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn iterate_over(&self, _program: &str, _map: &str) -> Result<Vec<u8>, HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn entries(&self, _map: &str) -> Result<Vec<Entry>, HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn put(&self, _map: &str, _key: &[u8], _value: &[u8]) -> Result<(), HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn remove(&self, _map: &str, _key: &[u8]) -> Result<(), HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn take(&self, _map: &str, _key: &[u8]) -> Result<Option<Vec<u8>>, HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn value(&self, _map: &str, _index: u32) -> Result<Vec<u8>, HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn drain(&self, _map: &str, _each: &mut dyn FnMut(&[u8])) -> Result<(), HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn meter(&self) -> Result<CostMeter, HostError> {
        match self.never {}
    }

    /// Never called.
    pub fn map_bytes(&self) -> u64 {
        match self.never {}
    }
}

fn not_built(what: &str) -> HostError {
    HostError::Unsupported {
        what: what.into(),
        needs: "a build with BPF (this one was built with --no-default-features, without clang)"
            .into(),
    }
}

/// **Errors** always: this build has no BPF programs.
pub fn read_iterator(_link: std::os::fd::BorrowedFd<'_>) -> Result<Vec<u8>, HostError> {
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
