//! The programs of the causes: this binary, started again as a reader, a sender, or what else a cause needs.

mod attach;
mod counts;
mod frames;
mod hog;
mod hold;
mod read;
mod send;
mod tcp_load;
mod tcp_serve;
mod words;

use words::Words;

/// Plays a role until it is ended. A panic is what its log says then.
pub fn play(words: &[String]) {
    let role = words.first().map_or("", String::as_str);
    let words = Words::of(&words[1..]);
    match role {
        "read" => read::play(&words),
        "send" => send::play(&words),
        "frames" => frames::play(&words),
        "hold" => hold::play(&words),
        "hog" => hog::play(&words),
        "attach" => attach::play(&words),
        "tcp-serve" => tcp_serve::play(&words),
        "tcp-load" => tcp_load::play(&words),
        other => panic!("{other}: no such role"),
    }
}
