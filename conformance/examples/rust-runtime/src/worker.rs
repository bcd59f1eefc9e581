//! The loop that polls and starts jobs.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::protocol::Entry;
use crate::{Context, job};

/// After failed polls the pause grows up to this: with the time that an answer is waited for below 10 s (RT-SCHED-62).
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Polls until the shutdown, then waits for the jobs that run, at most `patience`.
pub async fn work(context: Arc<Context>, patience: Duration) {
    let jobs = Jobs {
        running: TaskTracker::new(),
        slots: Arc::new(Semaphore::new(context.config.slots)),
        ids: Arc::default(),
    };
    context.shutdown.run_until_cancelled(poll(&context, &jobs)).await;
    jobs.running.close();
    if timeout(patience, jobs.running.wait()).await.is_err() {
        tracing::error!("jobs were still under way at the exit");
    }
}

/// Polls for ever (RT-SCHED-61): after whatever answer it waits the poll interval at least (RT-SCHED-07, RT-SCHED-60),
/// and with no free slot until there is one (RT-SCHED-63).
async fn poll(context: &Arc<Context>, jobs: &Jobs) {
    let interval = context.config.poll_interval;
    let mut failures = 0;
    loop {
        drop(jobs.slots.acquire().await);
        match context.api.poll(jobs.slots.available_permits().clamp(1, 50)).await {
            Ok(entries) => {
                failures = 0;
                entries.into_iter().for_each(|entry| jobs.start(context, entry));
            }
            Err(problem) => {
                failures = (failures + 1).min(6);
                tracing::warn!(%problem, "poll");
            }
        }
        let longest = LONGEST_PAUSE.max(interval);
        let pause = (interval * 2_u32.pow(failures)).min(longest);
        sleep(pause.mul_f64(1.0 + fastrand::f64() / 10.0)).await; // jitter: not all Runtimes at once
    }
}

/// The jobs of this process.
struct Jobs {
    running: TaskTracker,
    slots: Arc<Semaphore>,
    ids: Arc<Mutex<HashSet<String>>>,
}

impl Jobs {
    /// Starts a job in a task of its own, so that no job waits for another's lock (RT-LOCK-61), unless this process
    /// has it in hand already (RT-LOCK-63) or has no slot left.
    fn start(&self, context: &Arc<Context>, entry: Entry) {
        let Ok(slot) = self.slots.clone().try_acquire_owned() else { return };
        let Some(in_hand) = InHand::new(&self.ids, &entry.id) else { return };
        let context = context.clone();
        self.running.spawn(async move {
            job::run(&context, entry).await;
            drop((in_hand, slot));
        });
    }
}

/// Marks a job as being in hand until it is dropped, whatever ends it.
struct InHand {
    ids: Arc<Mutex<HashSet<String>>>,
    id: String,
}

impl InHand {
    fn new(ids: &Arc<Mutex<HashSet<String>>>, id: &str) -> Option<Self> {
        let new = ids.lock().unwrap_or_else(PoisonError::into_inner).insert(id.into());
        new.then(|| Self { ids: ids.clone(), id: id.into() })
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
