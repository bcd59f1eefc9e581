//! `GET /internal/runtime/health` (RT-HEALTH-01 to 10).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What health tells.
pub struct Pulse {
    instance_id: String,
    shutdown: CancellationToken,
    started_at: u64,
    last_job_at: AtomicU64, // 0: none yet
    active_jobs: AtomicUsize,
}

impl Pulse {
    /// The pulse of a process that has just begun.
    pub fn new(instance_id: &str, shutdown: CancellationToken) -> Self {
        Self {
            instance_id: instance_id.into(),
            shutdown,
            started_at: now(),
            last_job_at: AtomicU64::new(0),
            active_jobs: AtomicUsize::new(0),
        }
    }

    /// Counts a job as active until the answer is dropped (RT-HEALTH-52, RT-HEALTH-53).
    pub fn job(&self) -> ActiveJob<'_> {
        self.last_job_at.store(now(), Relaxed);
        self.active_jobs.fetch_add(1, Relaxed);
        ActiveJob(self)
    }

    fn body(&self) -> Value {
        let last = Some(self.last_job_at.load(Relaxed)).filter(|at| *at > 0); // null before the first (RT-HEALTH-51)
        json!({
            "runtimeInstanceId": self.instance_id,
            "status": if self.shutdown.is_cancelled() { "draining" } else { "ok" },
            "version": env!("CARGO_PKG_VERSION"),
            "startedAt": self.started_at,
            "lastJobAt": last,
            "activeJobs": self.active_jobs.load(Relaxed),
        })
    }
}

/// A job that runs.
pub struct ActiveJob<'a>(&'a Pulse);

impl Drop for ActiveJob<'_> {
    fn drop(&mut self) {
        self.0.last_job_at.store(now(), Relaxed);
        self.0.active_jobs.fetch_sub(1, Relaxed);
    }
}

/// Serves health on 127.0.0.1 (RT-HEALTH-56), beside the work (RT-HEALTH-54), until the answer is dropped.
pub async fn serve(port: Option<u16>, pulse: Arc<Pulse>) -> io::Result<JoinSet<io::Result<()>>> {
    let mut server = JoinSet::new();
    if let Some(port) = port {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let answer = |State(pulse): State<Arc<Pulse>>| async move { Json(pulse.body()) };
        let router = Router::new().route("/internal/runtime/health", get(answer)).with_state(pulse);
        server.spawn(async move { axum::serve(listener, router).await });
    }
    Ok(server)
}

/// Unix epoch milliseconds.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_tells_of_jobs_as_they_begin_and_end() {
        let pulse = Pulse::new("runtime-1", CancellationToken::new());
        assert_eq!((&pulse.body()["lastJobAt"], &pulse.body()["activeJobs"]), (&Value::Null, &json!(0)));
        let job = pulse.job();
        assert_eq!(pulse.body()["activeJobs"], 1);
        drop(job);
        assert_eq!(pulse.body()["activeJobs"], 0);
        assert!(pulse.body()["lastJobAt"].as_u64() >= pulse.body()["startedAt"].as_u64());
        assert_eq!(pulse.body()["status"], "ok");
    }
}
