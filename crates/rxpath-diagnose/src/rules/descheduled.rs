//! The reader has datagrams waiting but does not get its CPU.

use crate::rules::prelude::*;

pub fn claim(view: &View) -> Claim {
    let reader = &view.reader.lead;
    let cpu = reader.cpu;
    let foreign = cpu
        .and_then(|cpu| view.cpu(cpu)?.foreign_ratio)
        .is_some_and(|ratio| ratio.is_finite() && ratio >= FOREIGN_RATIO);
    let sender = view.sender_on_reader();
    let named = foreign || sender.is_some() || view.reader.count > view.reader.cpus.len();
    let sure = Confidence::strong_if(reader.waiting >= WAITING_MUCH_RATIO && named);
    let of = cpu.map_or_else(|| "a CPU".to_string(), |cpu| format!("CPU {cpu}"));
    let beside = sender.map(|cpu| {
        line(
            format!("the sender runs on CPU {cpu} too, with its system calls and the receive work in them"),
            "CPUs seen",
        )
    });
    let sentence = format!(
        "the receiving application is kept off its CPU: it waited for {of} {} of the window while its socket overflowed",
        percent(reader.waiting)
    );
    Claim::at_socket(view, Stage::ApplicationDescheduled, sure, sentence)
        .on(cpu)
        .because([lead("receiver", &view.reader)])
        .because(drops(view, Place::SocketBuffer))
        .because(services(view))
        .because(beside)
        .because(others_on(view, cpu))
        .because(softirq_beside_reader(view))
        .because(cpu.and_then(|cpu| cpu_use(view, cpu)))
        .because(queues(view))
        .because([rates(view)])
        .remedies((view.raw.cpus.len() > 1).then_some(Remedy::READER_OWN_CPU))
        .remedy("a better priority: `chrt -r 1` for a reader that sleeps; `nice -n -15` counts against programs of its own session only, where kernel.sched_autogroup_enabled is 1 (then `echo -15 > /proc/PID/autogroup`)")
        .remedy(Remedy::BUFFER_FOR_WAITS)
}
