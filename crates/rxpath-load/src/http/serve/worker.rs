//! A thread of the server: starts its engine and runs it.

use crate::LoadError;
use crate::http::serve::by_epoll::EpollLoop;
use crate::http::serve::by_uring::UringLoop;
use crate::http::serve::options::Engine;
use crate::http::serve::worker_state::{Plan, Report, WorkerState};
use crate::pool::Start;

/// Runs until a stop request.
pub(super) fn run(plan: Plan, start: &Start) -> Result<Report, LoadError> {
    let engine = plan.options.engine;
    let mut state = WorkerState::new(plan, start);
    let engine = match engine {
        Engine::Epoll => Started::Epoll(Box::new(EpollLoop::new(state)?)),
        Engine::Uring => Started::Uring(Box::new(UringLoop::new(state)?)),
    };
    start.ready();
    state = match engine {
        Started::Epoll(engine) => engine.run(),
        Started::Uring(engine) => engine.run(),
    }?;
    Ok(state.report())
}

enum Started {
    Epoll(Box<EpollLoop>),
    Uring(Box<UringLoop>),
}
