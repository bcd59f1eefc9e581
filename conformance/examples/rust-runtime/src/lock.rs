//! A lock that is held: heartbeats in a task of their own, and work that ends when the lock does.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::api::{Api, ApiError};
use crate::config::Config;
use crate::failure::{Code, Failure, Stop};

/// What the heartbeats found out.
#[derive(Clone, Copy)]
struct State {
    /// Until when the lock holds by our own monotonic clock; it counts the time in which the process was stopped, too
    until: Instant,
    gone: bool,
    cancelled: bool,
    refused: bool,
}

impl State {
    fn lost(&self) -> bool {
        self.gone || Instant::now() >= self.until
    }

    fn stop(&self) -> Option<Stop> {
        if self.lost() {
            Some(Stop::Lost)
        } else if self.cancelled {
            Some(Failure::new(Code::JobCancelled, "the user withdrew consent").into())
        } else if self.refused {
            Some(Failure::new(Code::InternalError, "the API refuses heartbeats").into())
        } else {
            None
        }
    }
}

/// A held lock. Its heartbeats end when it is dropped.
pub struct Lock {
    state: watch::Receiver<State>,
    wire: Arc<Mutex<()>>,
    beats: JoinHandle<()>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.beats.abort();
    }
}

impl Lock {
    /// Keeps the lock that a request sent at `sent` gave.
    pub fn keep(api: Arc<Api>, config: &Config, job_id: String, sent: Instant) -> Self {
        let until = sent + config.lock_length();
        let (sender, state) = watch::channel(State { until, gone: false, cancelled: false, refused: false });
        let wire = Arc::new(Mutex::new(()));
        let (length, beat) = (config.lock_length(), config.beat());
        let beats = Beats { api, job_id, length, beat, state: sender, wire: wire.clone() };
        Self { state, wire, beats: tokio::spawn(beats.run()) }
    }

    /// The work's outcome, or why it ended before: the lock is lost (RT-HB-62, RT-HB-63), or the job is to be stopped
    /// (RT-CANCEL-05). The work is dropped then, and with it a model call; work is not begun where it is so already.
    pub async fn hold<W: Future>(&self, work: W) -> Result<W::Output, Stop> {
        self.guard(work, State::stop).await
    }

    /// The same for what is to be done of a job that is to be stopped: it ends with the lock alone.
    pub async fn hold_to_the_end<W: Future>(&self, work: W) -> Result<W::Output, Stop> {
        self.guard(work, |state| state.lost().then_some(Stop::Lost)).await
    }

    /// A report, while no heartbeat is under way: the two don't cross, and none follows a report that was taken.
    pub async fn report(&self, report: impl Future<Output = Result<(), ApiError>>) -> Result<(), ApiError> {
        let _wire = timeout(Duration::from_secs(1), self.wire.lock()).await; // one that hangs is not waited for
        let answer = report.await;
        if matches!(answer, Ok(()) | Err(ApiError::Refused { status: 404 | 409, .. })) {
            self.beats.abort();
        }
        answer
    }

    async fn guard<W: Future>(&self, work: W, stop: impl Fn(&State) -> Option<Stop>) -> Result<W::Output, Stop> {
        let mut state = self.state.clone();
        let mut work = pin!(work);
        loop {
            let now = *state.borrow_and_update();
            if let Some(stop) = stop(&now) {
                return Err(stop);
            }
            tokio::select! {
                biased; // a lock that is lost goes first, also where a stopped process wakes up to both
                Ok(()) = state.changed() => {}
                () = sleep_until(now.until) => {}
                outcome = &mut work => return Ok(outcome),
            }
        }
    }
}

/// The task that sends heartbeats: the first at once, since it says that execution began.
struct Beats {
    api: Arc<Api>,
    job_id: String,
    length: Duration,
    beat: Duration,
    state: watch::Sender<State>,
    wire: Arc<Mutex<()>>,
}

impl Beats {
    /// Heartbeats by durations from sending (RT-HB-60, RT-HB-64); one that failed is repeated soon, with a short
    /// timeout of its own, so that several fit into what is left of the lock (RT-HB-61). After a stall there is one
    /// heartbeat, if the lock still holds, not all those that were missed.
    async fn run(self) {
        let mut next = Instant::now();
        let mut refusals = 0;
        loop {
            let until = self.state.borrow().until;
            sleep_until(next.min(until)).await;
            let wire = self.wire.lock().await; // a report goes first; each of its tries is shorter than the lock
            let sent = Instant::now();
            if sent >= until {
                return self.end(|state| state.gone = true);
            }
            let patience = (self.beat * 3 / 4).min(until - sent).min(Duration::from_secs(5));
            let answer = timeout(patience, self.api.heartbeat(&self.job_id)).await.unwrap_or(Err(ApiError::Lost));
            drop(wire);
            match answer {
                Ok(cancelled) => {
                    refusals = 0;
                    next = sent + self.beat;
                    self.state.send_modify(|state| {
                        state.until = sent + self.length;
                        state.cancelled |= cancelled;
                    });
                }
                Err(ApiError::Refused { status: 404 | 409, .. }) => return self.end(|state| state.gone = true),
                Err(ApiError::Refused { .. }) if refusals > 0 => return self.end(|state| state.refused = true),
                Err(problem) => {
                    refusals += u32::from(matches!(problem, ApiError::Refused { .. })); // repeated once (RT-AUTH-61)
                    tracing::warn!(job = self.job_id, %problem, "heartbeat");
                    next = Instant::now() + self.beat / 4;
                }
            }
        }
    }

    /// Tells the last news: this task ends, what the lock's state says stays.
    fn end(&self, news: impl FnOnce(&mut State)) {
        self.state.send_modify(news);
    }
}
