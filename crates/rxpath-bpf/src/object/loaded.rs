//! A loaded object.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::{
    Link, MapCore, MapFlags, Object, Program, ProgramInput, ProgramMut, RingBufferBuilder,
};
use rxpath_core::Fact;
use rxpath_host::HostError;

use super::choose::{alone, open, refused, with_hooks};
use super::iterate::read_iterator;
use super::patient::patiently;
use super::{
    Give, MapEntry, ObjectSpec, PREFIX, ProgramSpec, ProgramState, Sizes, Words, batch, check_map,
    log,
};
use crate::cost::CostMeter;

/// `BPF_F_TEST_RUN_ON_CPU`, include/uapi/linux/bpf.h; for raw tracepoint programs since 5.10.
const TEST_RUN_ON_CPU: u32 = 1;

/// `BPF_F_TEST_XDP_LIVE_FRAMES`, include/uapi/linux/bpf.h.
const TEST_XDP_LIVE_FRAMES: u32 = 2;

/// An object whose programs are in the kernel. Dropping it detaches and removes them.
pub struct Loaded {
    // Links first: they are dropped before the programs that they hold.
    links: Vec<(&'static str, Link)>,
    object: Object,
    spec: ObjectSpec,
    states: Vec<ProgramState>,
    attached_before: BTreeSet<&'static str>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("spec", &self.spec.name)
            .field("states", &self.states)
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// Loads the programs that this kernel accepts. `constants` becomes the object's read-only data, unless it is
    /// empty, and `sizes` the sizes of maps. It tries four times within 0.7 s where memory or descriptors are short.
    ///
    /// **Errors** when a required program can't be loaded, with the reason.
    pub fn load(spec: &ObjectSpec, constants: &[u8], sizes: Sizes<'_>) -> Result<Self, HostError> {
        patiently(|| Self::load_once(spec, constants, sizes))
    }

    fn load_once(spec: &ObjectSpec, constants: &[u8], sizes: Sizes<'_>) -> Result<Self, HostError> {
        log::keep();
        let mut chosen = with_hooks(spec)?;
        let object = match load_chosen(spec, &chosen, constants, sizes) {
            Ok(object) => object,
            // No program is at fault: none must be left out.
            Err(error) if error.is_passing() => return Err(error),
            Err(_) => {
                // Some program is refused: loading each alone shows which.
                for (program, state) in chosen.iter_mut().filter(|(_, s)| s.value().is_some()) {
                    *state = alone(spec, program);
                }
                check_required(spec, &chosen)?;
                load_chosen(spec, &chosen, constants, sizes)?
            }
        };
        check_required(spec, &chosen)?;
        for map in object.maps() {
            let name = map.name().to_string_lossy();
            // Variables and constants have no keys, and the constants' size is compared when they are set.
            if !name.contains('.') {
                check_map(spec, (&name, map.key_size(), map.value_size()))?;
            }
        }
        let states = chosen.into_iter().map(|(program, state)| state_of(&object, &program, state));
        let (states, attached_before) = (states.collect(), BTreeSet::new());
        Ok(Self { states, links: Vec::new(), spec: *spec, object, attached_before })
    }

    /// Attaches each program that has a hook, at first as patiently as it loads; one that is refused is named and left out.
    ///
    /// **Errors** when one is refused that is required, or that this kernel took before.
    pub fn attach(&mut self) -> Result<(), HostError> {
        let mut programs = self.spec.programs.iter();
        programs.try_for_each(|program| self.attach_one(program))
    }

    /// Attaches these programs, in this order, as [`Loaded::attach`] does.
    pub fn attach_some(&mut self, names: &[&str]) -> Result<(), HostError> {
        let all = self.spec.programs;
        let mut these = names.iter().filter_map(|name| all.iter().find(|one| one.name == *name));
        these.try_for_each(|program| self.attach_one(program))
    }

    /// Whether this program is at its hook.
    pub fn is_attached(&self, name: &str) -> bool {
        self.links.iter().any(|(attached, _)| *attached == name)
    }

    /// Takes these programs from their hooks, in this order. They stay in the kernel and can be attached again.
    pub fn detach_some(&mut self, names: &[&str]) {
        for name in names {
            self.links.retain(|(attached, _)| attached != name);
        }
    }

    fn attach_one(&mut self, program: &'static ProgramSpec) -> Result<(), HostError> {
        let state = self.states.iter_mut().find(|state| state.program == program.name);
        let Some(state) = state.filter(|state| state.id.value().is_some()) else { return Ok(()) };
        if program.hook.is_none() {
            return Ok(());
        }
        log::keep();
        let Some(loaded) = named(&self.object, program.name) else { return Ok(()) };
        let what = format!("attach {}", program.name);
        let attach = || loaded.attach().map_err(|error| refused(&what, &error));
        // Later the caller decides when to try again, and must not be kept waiting here.
        let is_first = !self.attached_before.contains(program.name);
        let attached = if is_first { patiently(attach) } else { attach() };
        match attached {
            Ok(link) => {
                self.links.push((program.name, link));
                self.attached_before.insert(program.name);
            }
            Err(error) => {
                if program.required || !is_first {
                    return Err(error);
                }
                state.id = error.into_gap();
                state.lost_knowledge = Some(program.loses.into());
            }
        }
        Ok(())
    }

    /// Lets the programs count, where they wait for it (`bpf/counting.h`): for once all are attached.
    pub fn begin(&self) -> Result<(), HostError> {
        self.set(".bss", 1, "begin to count")
    }

    /// Lets them count no longer, until they begin again.
    pub fn pause(&self) -> Result<(), HostError> {
        self.set(".bss", 0, "pause the count")
    }

    /// Lets the programs time one of so many runs (`bpf/cost.h`): 1 or 64.
    pub fn time_one_of(&self, runs: u32) -> Result<(), HostError> {
        self.set(".data", runs, "time the programs")
    }

    /// Sets the only variable of a section.
    fn set(&self, section: &str, value: u32, what: &str) -> Result<(), HostError> {
        let is_it = |map: &libbpf_rs::Map<'_>| map.name().to_string_lossy().ends_with(section);
        let found = self.object.maps().find(is_it).ok_or_else(|| self.no_such("variables"))?;
        let (first, value) = (0u32.to_ne_bytes(), value.to_ne_bytes());
        found.update(&first, &value, MapFlags::ANY).map_err(|e| refused(what, &e))
    }

    /// The object's name.
    pub fn name(&self) -> &'static str {
        self.spec.name
    }

    /// What became of each program.
    pub fn programs(&self) -> &[ProgramState] {
        &self.states
    }

    /// Descriptors of what is attached, by program, to be used on another thread.
    pub fn links(&self) -> Result<Vec<(&'static str, OwnedFd)>, HostError> {
        let own =
            |(name, link): &(&'static str, Link)| Ok((*name, link.as_fd().try_clone_to_owned()?));
        let links: Result<Vec<_>, std::io::Error> = self.links.iter().map(own).collect();
        links.map_err(|e| HostError::os("use a link again", &e))
    }

    /// Runs a program once on a CPU, in an interrupt of that CPU.
    ///
    /// **Errors** `Kernel` with `ENXIO` for a CPU that is offline.
    pub fn run_on(&self, program: &str, cpu: u32) -> Result<(), HostError> {
        let found = named(&self.object, program).ok_or_else(|| self.no_such(program))?;
        let input = ProgramInput { cpu, flags: TEST_RUN_ON_CPU, ..ProgramInput::default() };
        found
            .test_run(input)
            .map(drop)
            .map_err(|_| HostError::last_os(format_args!("run {program} on CPU {cpu}")))
    }

    /// Runs an XDP program for `frames` copies of a frame that came in by a device, which leave as the program says;
    /// the kernel passes them on in groups of `batch`.
    ///
    /// **Errors** `Kernel` with `EINTR` when a signal came.
    pub fn run_live(
        &self,
        program: &str,
        frame: &[u8],
        (ifindex, frames, batch): (u32, u32, u32),
    ) -> Result<(), HostError> {
        let found = named(&self.object, program).ok_or_else(|| self.no_such(program))?;
        let context = libbpf_sys::xdp_md {
            data_end: frame.len() as u32,
            ingress_ifindex: ifindex,
            ..libbpf_sys::xdp_md::default()
        };
        let mut input = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            ctx_in: (&raw const context).cast(),
            ctx_size_in: size_of_val(&context) as u32,
            repeat: frames as i32,
            flags: TEST_XDP_LIVE_FRAMES,
            batch_size: batch,
            ..libbpf_sys::bpf_test_run_opts::default()
        };
        let fd = found.as_fd().as_raw_fd();
        // SAFETY: `input` points at the frame and the context, with their lengths; both outlive the call, which only
        // reads them.
        let done = unsafe { libbpf_sys::bpf_prog_test_run_opts(fd, &raw mut input) };
        if done == 0 {
            return Ok(());
        }
        Err(HostError::kernel(format!("run {program} on live frames"), -done))
    }

    /// The value of an array's only entry, shared with the programs.
    pub fn words(&self, map: &str) -> Result<Words, HostError> {
        let found = self.map(map)?;
        Words::map(found.as_fd(), found.value_size() as usize)
    }

    /// Runs an iterator over all that a map keeps, without one over all that it iterates over. Gives what it wrote.
    ///
    /// **Source** Documentation/bpf/bpf_iterators.rst; of sockets, those of the caller's network namespace.
    pub fn iterate(&self, program: &str, map: Option<&str>) -> Result<Vec<u8>, HostError> {
        let found = named(&self.object, program).ok_or_else(|| self.no_such(program))?;
        log::keep();
        let link = match map {
            Some(map) => found.attach_iter(self.map(map)?.as_fd()),
            None => found.attach(),
        };
        let link = link.map_err(|e| refused(&format!("run the iterator {program}"), &e))?;
        read_iterator(link.as_fd())
    }

    /// Gives every key and value of a hash map to `give`, which may remove what it was given.
    pub fn each(&self, map: &str, give: Give<'_>) -> Result<(), HostError> {
        batch::each(&self.map(map)?, give)
    }

    /// Every key and value of a hash map.
    pub fn entries(&self, map: &str) -> Result<Vec<MapEntry>, HostError> {
        batch::entries(&self.map(map)?)
    }

    /// Writes an entry of a hash map or of an array.
    pub fn put(&self, map: &str, key: &[u8], value: &[u8]) -> Result<(), HostError> {
        self.map(map)?
            .update(key, value, MapFlags::ANY)
            .map_err(|e| refused(&format!("write the map {map}"), &e))
    }

    /// Removes an entry of a hash map.
    pub fn remove(&self, map: &str, key: &[u8]) -> Result<(), HostError> {
        self.map(map)?.delete(key).map_err(|e| refused(&format!("empty the map {map}"), &e))
    }

    /// Takes an entry out of a hash map; none when it is not there.
    pub fn take(&self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>, HostError> {
        let taken = self.map(map)?.lookup_and_delete(key);
        taken.map_err(|e| refused(&format!("empty the map {map}"), &e))
    }

    /// The value of an array's entry.
    pub fn value(&self, map: &str, index: u32) -> Result<Vec<u8>, HostError> {
        let what = || format!("read entry {index} of the map {map}");
        self.map(map)?
            .lookup(&index.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| refused(&what(), &e))?
            .ok_or_else(|| HostError::Unsupported { what: what(), needs: "that entry".into() })
    }

    /// The values of a per-CPU array's entry, one for each possible CPU.
    pub fn values(&self, map: &str, index: u32) -> Result<Vec<Vec<u8>>, HostError> {
        let what = || format!("read entry {index} of the map {map}");
        self.map(map)?
            .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| refused(&what(), &e))?
            .ok_or_else(|| HostError::Unsupported { what: what(), needs: "that entry".into() })
    }

    /// The kernel's id of a program.
    pub fn id(&self, program: &str) -> Result<u32, HostError> {
        let found = named(&self.object, program).ok_or_else(|| self.no_such(program))?;
        Program::id_from_fd(found.as_fd()).map_err(|e| refused("read a program's id", &e))
    }

    /// Attaches an XDP program to a device until the descriptor is closed. `flags` are `XDP_FLAGS_*`.
    ///
    /// **Source** `bpf_xdp_link_attach`, net/core/dev.c (5.9): a link never replaces a program.
    /// **Errors** `Kernel` with `EBUSY` or `EEXIST` where another program is, `EOPNOTSUPP` where the driver has no XDP.
    pub fn attach_xdp(&self, program: &str, device: u32, flags: u32) -> Result<OwnedFd, HostError> {
        let found = named(&self.object, program).ok_or_else(|| self.no_such(program))?;
        let size = size_of::<libbpf_sys::bpf_link_create_opts>();
        let options =
            libbpf_sys::bpf_link_create_opts { sz: size as _, flags, ..Default::default() };
        // SAFETY: `options` says its size and outlives the call; the descriptor that it gives has no other owner.
        let fd = unsafe {
            libbpf_sys::bpf_link_create(
                found.as_fd().as_raw_fd(),
                device as i32,
                libbpf_sys::BPF_XDP,
                &raw const options,
            )
        };
        if fd < 0 {
            return Err(HostError::kernel("attach an XDP program", -fd));
        }
        // SAFETY: just opened, see above.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Gives every event that waits in a ring buffer to `each`.
    pub fn drain(&self, map: &str, each: &mut dyn FnMut(&[u8])) -> Result<(), HostError> {
        let found = self.map(map)?;
        let each = std::cell::RefCell::new(each);
        let mut builder = RingBufferBuilder::new();
        let take = |bytes: &[u8]| {
            (each.borrow_mut())(bytes);
            0
        };
        let what = |e: &libbpf_rs::Error| refused(&format!("read the events of {map}"), e);
        builder.add(&found, take).map_err(|e| what(&e))?;
        let ring = builder.build().map_err(|e| what(&e))?;
        ring.consume().map_err(|e| what(&e))
    }

    /// Starts to measure what the programs cost.
    pub fn meter(&self) -> CostMeter {
        let named = |state: &ProgramState| Some((*state.id.value()?, state.program.clone()));
        CostMeter::start(self.states.iter().filter_map(named).collect())
    }

    /// Kernel memory of the maps. **Source** `memlock` of `/proc/self/fdinfo/FD`, kernel/bpf/syscall.c
    /// `bpf_map_show_fdinfo`.
    pub fn map_bytes(&self) -> u64 {
        let of = |fd: i32| {
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
            text.lines().find_map(|line| line.strip_prefix("memlock:")?.trim().parse::<u64>().ok())
        };
        self.object.maps().filter_map(|map| of(map.as_fd().as_raw_fd())).sum()
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, HostError> {
        self.object.maps().find(|map| map.name() == name).ok_or_else(|| self.no_such(name))
    }

    fn no_such(&self, what: &str) -> HostError {
        let what = format!("use {what} of the probe {}", self.spec.name);
        HostError::unsupported(what, "a kernel that loads it")
    }
}

fn named<'o>(object: &'o Object, name: &str) -> Option<ProgramMut<'o>> {
    let is_it = |program: &ProgramMut<'_>| {
        program.name().to_str().and_then(|own| own.strip_prefix(PREFIX)) == Some(name)
    };
    object.progs_mut().find(is_it)
}

fn load_chosen(
    spec: &ObjectSpec,
    chosen: &[(ProgramSpec, Fact<()>)],
    constants: &[u8],
    sizes: Sizes<'_>,
) -> Result<Object, HostError> {
    let wanted = |name: &str| {
        chosen.iter().any(|(program, state)| program.name == name && state.value().is_some())
    };
    let mut object = open(spec, &wanted)?;
    let what = format!("load the BPF object {}", spec.name);
    let cpus = libbpf_rs::num_possible_cpus().map_err(|e| refused(&what, &e))? as u32;
    for mut map in object.maps_mut() {
        let name = map.name().to_str().unwrap_or_default().to_owned();
        if spec.per_cpu_maps.contains(&name.as_str()) {
            map.set_max_entries(cpus).map_err(|e| refused(&what, &e))?;
        }
        if let Some((_, entries)) = sizes.iter().find(|(of, _)| *of == name) {
            map.set_max_entries(*entries).map_err(|e| refused(&what, &e))?;
        }
        if name.ends_with(".rodata") && !constants.is_empty() {
            map.set_initial_value(constants).map_err(|e| refused(&what, &e))?;
        }
    }
    object.load().map_err(|e| refused(&what, &e))
}

fn check_required(spec: &ObjectSpec, chosen: &[(ProgramSpec, Fact<()>)]) -> Result<(), HostError> {
    let mut required = chosen.iter().filter(|(program, _)| program.required);
    required.try_for_each(|(program, state)| {
        let what = format!("probe {}, program {}", spec.name, program.name);
        match state {
            Fact::Ok { .. } => Ok(()),
            Fact::Absent { why } => {
                Err(HostError::unsupported(what, format!("another kernel: {why}")))
            }
            Fact::Denied { needs } => Err(HostError::Denied { what, capability: needs.clone() }),
        }
    })
}

fn state_of(object: &Object, program: &ProgramSpec, state: Fact<()>) -> ProgramState {
    let id = state.and_then(|()| {
        let program = named(object, program.name);
        let id = program.and_then(|program| Program::id_from_fd(program.as_fd()).ok());
        Fact::of(id, "it has no id")
    });
    ProgramState {
        program: program.name.into(),
        hook: program.hook.map(str::to_owned),
        lost_knowledge: id.value().is_none().then(|| program.loses.to_owned()),
        id,
    }
}
