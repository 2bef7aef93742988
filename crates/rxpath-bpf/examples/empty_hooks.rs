//! Attaches programs that do nothing to each softirq until its input ends: the floor of what any probe costs.

fn main() -> Result<(), rxpath_host::HostError> {
    let hooks = rxpath_bpf::empty::hooks()?;
    let attached = hooks.programs().iter().filter(|state| state.id.value().is_some());
    println!("attached {} programs", attached.count());
    // Its input ends when the parent process exits.
    while std::io::stdin().read_line(&mut String::new()).is_ok_and(|read| read > 0) {}
    Ok(())
}
