//! Delivering what came of a job, as long as its lock holds.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::api::{ApiError, Report};
use crate::failure::{Code, Failure, Stop};
use crate::lock::Lock;
use crate::protocol::Entry;
use crate::{Context, output};

/// How long a report is tried. Each try waits for its answer at most as long as any call to the API, so that three fit
/// into 10 s whatever happens (RT-RES-86).
const TRIES: Duration = Duration::from_secs(60);
const TRY: Duration = Duration::from_millis(2500);

/// What a successful job gives.
pub struct Success {
    /// The output, valid
    pub output: serde_json::Value,
    /// 0 where it is not known
    pub input_tokens: u64,
    /// 0 where it is not known
    pub output_tokens: u64,
    /// How long the model took
    pub latency_ms: u64,
}

/// How a report ended.
enum Delivered {
    Taken,
    /// Nothing more is to be said: the job has another result, is cancelled, or is not ours
    Settled,
    Refused(u16),
    GivenUp,
}

/// Reports a job's outcome: its result, or its failure.
pub async fn deliver(context: &Context, lock: &Lock, entry: &Entry, attempt_no: u64, outcome: Result<Success, Stop>) {
    let outcome = match outcome {
        Ok(success) => result(context, lock, entry, attempt_no, success).await,
        Err(stop) => Err(stop),
    };
    let outcome = match outcome {
        Err(Stop::Failed(failure)) => fail(context, lock, entry, failure).await,
        other => other,
    };
    if outcome.is_err() {
        tracing::warn!(job = entry.id, "the lock is lost");
    }
}

/// RT-RES-02 to 12. An error is what is to be reported instead.
async fn result(context: &Context, lock: &Lock, entry: &Entry, attempt_no: u64, success: Success) -> Result<(), Stop> {
    let body = json!({
        "runtimeInstanceId": context.config.instance_id,
        "schemaVersion": entry.output_version,
        "status": "succeeded",
        "rawOutput": success.output,
        "validatedOutput": success.output,
        "validationErrors": [],
        "usage": {
            "inputTokens": success.input_tokens,
            "outputTokens": success.output_tokens,
            "totalTokens": success.input_tokens + success.output_tokens,
            "latencyMs": success.latency_ms,
            "costEstimate": 0,
        },
        "attemptNo": attempt_no,
        "outputHash": output::hash(&success.output),
    });
    match send(context, lock, entry, Report::Result, body.to_string().into_bytes()).await? {
        Delivered::Taken => tracing::info!(job = entry.id, "succeeded"),
        Delivered::Settled => tracing::info!(job = entry.id, "the result is not wanted any more"), // RT-RES-84, RT-CANCEL-72
        Delivered::Refused(400 | 413 | 422) => {
            return Err(Failure::new(Code::InvalidSchema, "the API refused the result").into()); // RT-RES-87
        }
        Delivered::Refused(_) => return Err(Failure::new(Code::InternalError, "the API refused the result").into()),
        Delivered::GivenUp => tracing::error!(job = entry.id, "the result could not be delivered"),
    }
    Ok(())
}

/// RT-FAIL-02 to 06.
async fn fail(context: &Context, lock: &Lock, entry: &Entry, failure: Failure) -> Result<(), Stop> {
    let (code, retryable) = failure.code.wire();
    let body = json!({
        "runtimeInstanceId": context.config.instance_id,
        "errorCode": code,
        "errorMessage": failure.message,
        "retryable": retryable,
        "rawError": failure.message,
    });
    match send(context, lock, entry, Report::Fail, body.to_string().into_bytes()).await? {
        Delivered::Taken => tracing::info!(job = entry.id, code, failure.message, "failed"),
        Delivered::Settled => {}
        Delivered::Refused(_) | Delivered::GivenUp => {
            tracing::error!(job = entry.id, "the failure could not be delivered")
        }
    }
    Ok(())
}

/// Sends the same bytes until they are answered (RT-RES-85, RT-FAIL-71), while the lock holds.
async fn send(context: &Context, lock: &Lock, entry: &Entry, report: Report, body: Vec<u8>) -> Result<Delivered, Stop> {
    let end = Instant::now() + TRIES;
    let mut pause = Duration::from_millis(200);
    let mut unauthorized = 0;
    loop {
        let attempt = async {
            let answer = timeout(TRY, context.api.report(&entry.id, report, body.clone()));
            lock.report(async { answer.await.unwrap_or(Err(ApiError::Lost)) }).await
        };
        let answer = match report {
            Report::Result => lock.hold(attempt).await?, // a cancel request ends it
            Report::Fail => lock.hold_to_the_end(attempt).await?,
        };
        match answer {
            Ok(()) => return Ok(Delivered::Taken), // 200 and 201 alike (RT-RES-83)
            Err(ApiError::Refused { status: 404 | 409, .. }) => return Ok(Delivered::Settled),
            Err(ApiError::Refused { status: 401 | 403, .. }) if unauthorized == 0 => unauthorized += 1, // RT-AUTH-61
            Err(ApiError::Refused { status, .. }) => return Ok(Delivered::Refused(status)),
            Err(problem) => {
                tracing::warn!(job = entry.id, %problem, "report");
                if Instant::now() >= end {
                    return Ok(Delivered::GivenUp);
                }
            }
        }
        match report {
            Report::Result => lock.hold(sleep(pause)).await?,
            Report::Fail => lock.hold_to_the_end(sleep(pause)).await?,
        }
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}
