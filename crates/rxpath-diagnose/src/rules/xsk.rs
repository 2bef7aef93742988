//! The AF_XDP socket of a receiver that bypasses the stack has no room: its thread is full, or pauses.

use super::application;
use crate::rules::prelude::*;

const NEEDS: &[Part] = &[Part::Ledger, Part::Window, Part::Cpus, Part::Readers];

pub fn judge(view: &View) -> Option<Claim> {
    let lost = view.loss_at(Place::XdpSocket)?;
    let (share, reader) = (percent(view.of_offered(lost)), &view.reader.lead);
    let is_full = reader.demand() >= FULL_RATIO;
    let (stage, sure, sentence) = if is_full {
        let sentence = format!(
            "the receiving application is the limit: it keeps its AF_XDP socket without room, which lost {share} of the offered datagrams"
        );
        (Stage::Application, application::confidence(view), sentence)
    } else {
        let sentence = format!(
            "the AF_XDP socket is the limit: it lost {share} of the offered datagrams in bursts or stalls, while the reader had {} of its time left",
            percent(1.0 - reader.demand())
        );
        (Stage::SocketQueue, Confidence::Fair, sentence)
    };
    let claim = Claim::new(stage, sure, NEEDS, sentence)
        .on(reader.cpu)
        .dropped_at(view, Place::XdpSocket, lost)
        .because([lead("receiver", &view.reader)])
        .because(softirq_beside_reader(view))
        .because(cpu_and_others(view, reader.cpu))
        .because([rates(view)])
        .remedies(view.softirq_on_reader().map(|cpu| Remedy::softirq_off_reader(cpu, false)));
    Some(if is_full {
        claim.remedy(Remedy::READER_PER_QUEUE).remedy(Remedy::LESS_WORK)
    } else {
        claim.remedy(Remedy::MORE_FRAMES).remedy(Remedy::SMOOTHER_SENDING)
    })
}
