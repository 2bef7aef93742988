//! The socket's buffer overflows although the reader has time left: bursts, or a reader that stalls.

use rxpath_record::evidence::SocketUse;

use crate::rules::prelude::*;

/// The socket that lost most, in terms of time.
struct Queue<'a> {
    socket: &'a SocketUse,
    capacity: f64,
    truesize_bytes: f64,
    arriving_pps: f64,
}

fn queue<'a>(view: &View<'a>) -> Option<Queue<'a>> {
    let fullest = view
        .sockets
        .iter()
        .copied()
        .max_by_key(|s| (s.drops_packets, s.delivered_packets, std::cmp::Reverse(s.index)))?;
    let capacity = fullest.capacity_packets.filter(|packets| *packets > 0)? as f64;
    let arrived = fullest.drops_packets.saturating_add(fullest.delivered_packets) as f64;
    let arriving_pps = sound_rate(arrived / view.trial_s()?);
    (arriving_pps > 0.0 && fullest.rcvbuf_bytes > 0).then(|| Queue {
        socket: fullest,
        capacity,
        truesize_bytes: fullest.rcvbuf_bytes as f64 / capacity,
        arriving_pps,
    })
}

/// What a buffer must hold, and why that much: with the stall seen, what arrives in it; else the most that one stall can
/// have been.
fn need(view: &View, queue: &Queue) -> (f64, EvidenceLine) {
    if let Some(stall_s) = view.raw.reader_stall_s.map(sound_rate).filter(|s| *s > 0.0) {
        let packets = queue.arriving_pps * stall_s;
        if packets > queue.capacity {
            let why = format!(
                "the reader read nothing for up to {}, in which {} arrive",
                span(stall_s),
                datagrams(packets as u64)
            );
            return (packets, line(why, "the receiver's counts over time"));
        }
    }
    let packets = queue.capacity + queue.socket.drops_packets as f64;
    let why = format!(
        "no stall was seen in the samples; if all losses came in one stall, it lasted {}, and a buffer need not hold more than that",
        span(packets / queue.arriving_pps)
    );
    (packets, line(why, "drops over the arriving rate"))
}

fn held(queue: &Queue) -> EvidenceLine {
    let holds = format!(
        "socket {} holds {} of this size in its {} bytes: {} of the {} that arrive, {} a millisecond",
        queue.socket.index,
        datagrams(queue.capacity as u64),
        count(queue.socket.rcvbuf_bytes),
        span(queue.capacity / queue.arriving_pps),
        rate(queue.arriving_pps),
        count((queue.arriving_pps / 1e3).round() as u64),
    );
    line(holds, "SO_MEMINFO rcvbuf over the datagram's truesize")
}

pub fn claim(view: &View) -> Claim {
    let lost = view.lost_at(Place::SocketBuffer);
    let left = 1.0 - view.reader.lead.demand();
    let sure = view.reader.lead.demand() < SPARE_RATIO;
    let sentence = format!(
        "the socket's receive buffer is the limit: it lost {} of the offered datagrams in bursts or stalls, while the reader had {} of its time left",
        percent(view.of_offered(lost)),
        percent(left)
    );
    let (lines, size) = queue(view)
        .map(|queue| {
            let (packets, why) = need(view, &queue);
            ([held(&queue), why], size_option(packets * queue.truesize_bytes))
        })
        .unzip();
    Claim::at_socket(view, Stage::SocketQueue, Confidence::strong_if(sure), sentence)
        .on(view.reader.lead.cpu)
        .because(drops(view, Place::SocketBuffer))
        .because(services(view))
        .because([lead("receiver", &view.reader)])
        .because(lines.into_iter().flatten())
        .because(queues(view))
        .because([rates(view)])
        .remedy(Remedy::receive_buffer(size.as_deref()))
        .remedy("find what makes the reader pause (sleeps, locks, disk, garbage collection) and let a thread of its own empty the socket")
        .remedy(Remedy::SMOOTHER_SENDING)
}
