//! One invocation log for every model call.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::api::{Api, ApiError};
use crate::model::{Completion, ModelError};

/// A log as the API takes it: the job, the call, never a key (RT-LOG-03 to 08).
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the contract's own names")]
pub struct Log {
    pub job_id: String,
    pub provider: String,
    pub model: String,
    pub api_key_mode: String,
    pub credential_id: Option<String>,
    pub prompt_name: &'static str,
    pub prompt_version: Option<String>,
    pub output_schema_version: &'static str,
    pub input_tokens: u64, // unknown ones are 0 (RT-LOG-73)
    pub output_tokens: u64,
    pub total_tokens: u64,
    pub latency_ms: u64,
    pub cost_estimate: f64,
    pub success: bool,
    pub error_code: Option<&'static str>,
    pub error_message: Option<String>,
    pub retry_count: u32,
    pub runtime_instance_id: String,
    pub trace_id: String,
    pub correlation_id: String,
}

/// Submits logs beside the work: what becomes of a log changes nothing for its job (RT-LOG-10).
pub struct Logs {
    api: Arc<Api>,
    under_way: TaskTracker,
    runtime: Handle,
}

impl Logs {
    /// Within a Tokio runtime.
    pub fn new(api: Arc<Api>) -> Self {
        Self { api, under_way: TaskTracker::new(), runtime: Handle::current() }
    }

    /// Opens the log of a call that is about to begin, with a `traceId` of its own (RT-LOG-71).
    pub fn open(&self, facts: Log) -> OpenLog<'_> {
        let log = Log {
            runtime_instance_id: self.api.instance_id().into(),
            trace_id: format!("{:032x}", fastrand::u128(..)),
            error_code: Some("ABORTED"),
            error_message: Some("the call was aborted".into()),
            ..facts
        };
        OpenLog { logs: self, log, began: Instant::now() }
    }

    /// Waits for the logs that are still under way, at most so long (RT-LOG-72).
    pub async fn drain(&self, patience: Duration) {
        self.under_way.close();
        if timeout(patience, self.under_way.wait()).await.is_err() {
            tracing::warn!("logs of model calls were not taken before the exit");
        }
    }

    fn submit(&self, log: Log) {
        let api = self.api.clone();
        let submission = async move {
            let mut pause = Duration::from_millis(200);
            for _ in 0..4 {
                match api.log(&log).await {
                    Ok(()) => return,
                    Err(problem @ ApiError::Refused { .. }) => return tracing::warn!(%problem, "log"),
                    Err(problem) => tracing::warn!(%problem, "log"),
                }
                sleep(pause).await;
                pause *= 2;
            }
        };
        self.under_way.spawn_on(submission, &self.runtime);
    }
}

/// The log of a call under way. It is submitted when it is dropped: a call that was aborted by cancel, a lost lock or
/// shutdown is dropped without more, and so has its log, too (RT-LOG-70).
pub struct OpenLog<'a> {
    logs: &'a Logs,
    log: Log,
    began: Instant,
}

impl OpenLog<'_> {
    /// Closes it with the call's outcome (RT-LOG-09) and says how many milliseconds the call took.
    pub fn close(mut self, outcome: &Result<Completion, ModelError>) -> u64 {
        match outcome {
            Ok(completion) => {
                self.log.success = true;
                self.log.error_code = None;
                self.log.error_message = None;
                self.log.input_tokens = completion.input_tokens;
                self.log.output_tokens = completion.output_tokens;
                self.log.total_tokens = completion.input_tokens + completion.output_tokens;
            }
            Err(problem) => {
                self.log.error_code = Some(problem.code().wire().0);
                self.log.error_message = Some(problem.to_string());
            }
        }
        self.began.elapsed().as_millis() as u64
    }
}

impl Drop for OpenLog<'_> {
    fn drop(&mut self) {
        let mut log = std::mem::take(&mut self.log);
        log.latency_ms = self.began.elapsed().as_millis() as u64;
        self.logs.submit(log);
    }
}
