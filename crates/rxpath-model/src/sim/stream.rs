//! One TCP stream as the receive path sees it: a window, clocking by acknowledgements, and halving after a loss.
//!
//! Slow start and congestion avoidance as in RFC 5681, one reduction per round trip; no time-outs, no delayed
//! acknowledgements. Data that the socket cannot take is never sent: unread and unacknowledged packets stay within the
//! receive window.

use std::collections::VecDeque;

use super::slots::NEVER;

/// Initial window, RFC 6928.
const INITIAL: f64 = 10.0;

/// What became of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum News {
    /// Queued at the socket.
    Acknowledged,
    /// Read by the application: the window moves on.
    Read,
    /// Lost on the way.
    Lost,
}

/// The sender.
#[derive(Debug, Default)]
pub(super) struct Stream {
    window: u64,
    rtt: u64,
    gap: f64,
    congestion: f64,
    threshold: f64,
    /// Sent and neither acknowledged nor known to be lost.
    outstanding: u64,
    /// Sent and not read, as far as the sender knows.
    unread: u64,
    lost: u64,
    /// Segments sent again.
    pub(super) resent: u64,
    reduced_until: u64,
    line_free: f64,
    news: VecDeque<(u64, News)>,
}

impl Stream {
    pub(super) fn new(window: u64, rtt: u64, rate: f64) -> Self {
        Self {
            window,
            rtt,
            gap: 1e9 / rate,
            congestion: INITIAL,
            threshold: f64::INFINITY,
            news: VecDeque::with_capacity(4096),
            ..Self::default()
        }
    }

    /// When the next segment reaches the NIC, and counts it as sent; never, while the window is full.
    pub(super) fn next(&mut self, now: u64) -> u64 {
        let may = self.outstanding < self.congestion as u64 && self.unread < self.window;
        if !may {
            return NEVER;
        }
        let at = self.line_free.max(now as f64);
        self.line_free = at + self.gap;
        self.outstanding += 1;
        self.unread += 1;
        if self.lost > 0 {
            self.lost -= 1;
            self.resent += 1;
        }
        at.round() as u64
    }

    /// The sender will hear it a round trip later.
    pub(super) fn tell(&mut self, now: u64, news: News) {
        self.news.push_back((now + self.rtt, news));
    }

    /// When the sender hears next.
    pub(super) fn hears(&self) -> u64 {
        self.news.front().map_or(NEVER, |(at, _)| *at)
    }

    /// It hears everything that is due.
    pub(super) fn hear(&mut self, now: u64) {
        while let Some((at, news)) = self.news.front().copied() {
            if at > now {
                return;
            }
            self.news.pop_front();
            match news {
                News::Acknowledged => {
                    self.outstanding -= 1;
                    let slow_start = self.congestion < self.threshold;
                    self.congestion += if slow_start { 1.0 } else { 1.0 / self.congestion };
                    // Beyond the receive window it would only be a number.
                    self.congestion = self.congestion.min(self.window as f64 + 1.0);
                }
                News::Read => self.unread -= 1,
                News::Lost => {
                    self.outstanding -= 1;
                    self.unread -= 1;
                    self.lost += 1;
                    if now >= self.reduced_until {
                        self.reduced_until = now + self.rtt;
                        self.threshold = (self.congestion / 2.0).max(2.0);
                        self.congestion = self.threshold;
                    }
                }
            }
        }
    }
}
