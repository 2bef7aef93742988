//! A thread of the server: starts its engine and runs it.

use crate::LoadError;
use crate::http::serve::by_epoll::EpollLoop;
use crate::http::serve::by_uring::UringLoop;
use crate::http::serve::options::Engine;
use crate::http::serve::worker_state::{Plan, Report, WorkerState};
use crate::pool::Start;

/// Runs until a stop request.
pub(super) fn run(plan: Plan, start: &Start) -> Result<Report, LoadError> {
    let engine = plan.options.engine();
    let state = WorkerState::new(plan, start);
    let state = match engine {
        Engine::Epoll => EpollLoop::new(state).inspect(|_| start.ready())?.run(),
        Engine::Uring => UringLoop::new(state).inspect(|_| start.ready())?.run(),
    }?;
    Ok(state.report())
}
