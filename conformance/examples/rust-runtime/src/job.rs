//! One job from its lock to its report.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::api::ApiError;
use crate::failure::{Code, Failure, Stop};
use crate::lock::Lock;
use crate::model::Credential;
use crate::protocol::{Entry, Terms};
use crate::report::{self, Success};
use crate::{Context, logs, output, snapshot};

/// How often the API is asked for snapshot or credential before the job is given back.
const ASKS: u32 = 3;

/// Takes a job that a poll listed and does it, or leaves it where another Runtime has it (RT-LOCK-60).
pub async fn run(context: &Context, entry: Entry) {
    if context.shutdown.is_cancelled() {
        return; // RT-HEALTH-60
    }
    let sent = Instant::now();
    let Some((terms, held_from)) = take(context, &entry).await else { return };
    let lock = Lock::keep(context.api.clone(), &context.config, entry.id.clone(), held_from);
    let _active = context.pulse.job();
    let terms = terms.or(entry.terms.clone());
    let deadline = deadline(sent, terms.timeout_seconds.unwrap_or(120));
    let work = timeout_at(deadline, work(context, &lock, &entry, &terms)).await;
    let outcome = work.unwrap_or_else(|_| Err(Failure::new(Code::JobTimeout, "the job took too long").into()));
    report::deliver(context, &lock, &entry, terms.attempt_no.unwrap_or(0), outcome).await;
}

/// Locks the job (RT-LOCK-14) and says since when it is held at least. Where no answer came, a heartbeat finds out
/// whether it is held (RT-LOCK-62).
async fn take(context: &Context, entry: &Entry) -> Option<(Terms, Instant)> {
    let sent = Instant::now();
    match context.api.lock(&entry.id).await {
        Ok(terms) => Some((terms, sent)),
        Err(ApiError::Lost) => {
            let sent = Instant::now();
            context.api.heartbeat(&entry.id).await.ok().map(|_| (Terms::default(), sent))
        }
        Err(problem) => {
            tracing::info!(job = entry.id, %problem, "not locked");
            None
        }
    }
}

/// When the work has to be over, counted from sending the lock (RT-RETRY-67), with a little left to say so.
fn deadline(sent: Instant, timeout_seconds: u64) -> Instant {
    let limit = Duration::from_secs(timeout_seconds.min(86_400 * 365));
    let rest = (limit / 10).clamp(Duration::from_millis(200), Duration::from_secs(2));
    sent + limit.saturating_sub(rest)
}

/// Does the work. Each call is made only while the lock holds and the job is wanted.
async fn work(context: &Context, lock: &Lock, entry: &Entry, terms: &Terms) -> Result<Success, Stop> {
    let prepare = async {
        let seen = read_snapshot(context, lock, entry).await?;
        Ok::<_, Stop>((seen, resolve(context, lock, entry, terms).await?))
    };
    let (seen, credential) = tokio::select! {
        biased; // what the signal finds before its model call is given back (RT-HEALTH-61)
        () = context.shutdown.cancelled() => return Err(Failure::shutting_down().into()),
        prepared = prepare => prepared?,
    };
    let messages = json!([
        {"role": "system", "content": format!(
            "{} Answer with one JSON object of this JSON Schema and nothing else: {}",
            entry.kind.task, output::schema(entry.output_version),
        )},
        {"role": "user", "content": json!({"learner": seen, "params": terms.params}).to_string()},
    ]);
    let facts = logs::Log {
        job_id: entry.id.clone(),
        provider: credential.provider.clone(),
        model: credential.model.clone(),
        api_key_mode: key_mode(terms).into(),
        credential_id: terms.credential_id.clone(),
        prompt_name: entry.kind.name,
        prompt_version: entry.prompt_version.clone(),
        output_schema_version: entry.output_version,
        correlation_id: format!("{}:{}", entry.id, terms.attempt_no.unwrap_or(0)),
        ..logs::Log::default()
    };
    let call = async {
        let log = context.logs.open(facts);
        let answer = context.model.call(&credential, &messages).await;
        let latency_ms = log.close(&answer);
        answer.map(|completion| (completion, latency_ms))
    };
    let drained = async {
        context.shutdown.cancelled().await;
        sleep(context.config.drain).await;
    };
    let (completion, latency_ms) = tokio::select! {
        () = drained => return Err(Failure::shutting_down().into()), // RT-HEALTH-63
        answer = lock.hold(call) => answer?.map_err(Failure::from)?,
    };
    let output = output::validate(&completion.text, entry.output_version)?;
    let (input_tokens, output_tokens) = (completion.input_tokens, completion.output_tokens);
    Ok(Success { output, input_tokens, output_tokens, latency_ms })
}

/// What the model may see of the job's snapshot (RT-SNAP-18, RT-SNAP-60 to 63).
async fn read_snapshot(context: &Context, lock: &Lock, entry: &Entry) -> Result<Value, Stop> {
    let answer = ask(lock, || context.api.snapshot(&entry.id)).await?;
    let invalid = |what: &str| Failure::new(Code::InvalidSnapshot, what);
    let snapshot = answer.map_err(|problem| match problem {
        ApiError::Refused { status: 404, .. } => invalid("the snapshot does not exist"),
        ApiError::Refused { status: 410, .. } => Failure::new(Code::SnapshotExpired, "the snapshot has expired"),
        ApiError::Malformed => invalid("the snapshot is malformed"),
        other => unavailable("snapshot", &other),
    })?;
    Ok(Value::Object(snapshot::visible(&snapshot, &entry.id)?))
}

/// The credential with which to call the model (RT-CRED-70 to 72).
async fn resolve(context: &Context, lock: &Lock, entry: &Entry, terms: &Terms) -> Result<Credential, Stop> {
    let mode = key_mode(terms);
    let request = json!({
        "jobId": entry.id,
        "apiKeyMode": mode,
        "credentialId": terms.credential_id,
        "provider": terms.provider.as_deref().unwrap_or("deepseek"),
    });
    let answer = ask(lock, || context.api.resolve(&request)).await?;
    let resolved = answer.map_err(|problem| match problem {
        ApiError::Refused { status: 404 | 422, .. } => {
            Failure::new(Code::InvalidCredential, "the credential can't be used")
        }
        other => unavailable("credential", &other),
    })?;
    let own = context.config.platform_key.as_ref().filter(|_| mode == "platform_key");
    Ok(Credential::read(&resolved, own)?)
}

/// Asks the API, and again where it is not well; 409, or 404 for the job itself, says that the lock is lost (RT-HB-62).
async fn ask<A, Asking>(lock: &Lock, call: impl Fn() -> Asking) -> Result<Result<A, ApiError>, Stop>
where
    Asking: Future<Output = Result<A, ApiError>>,
{
    let mut asked = 1;
    loop {
        match lock.hold(call()).await? {
            Err(ApiError::Refused { status: 409, .. }) => return Err(Stop::Lost),
            Err(ApiError::Refused { status: 404, code }) if code == "JOB_NOT_FOUND" => return Err(Stop::Lost),
            Err(ApiError::Lost | ApiError::Unavailable(_)) if asked < ASKS => {
                lock.hold(sleep(Duration::from_millis(200) * asked)).await?;
                asked += 1;
            }
            answer => return Ok(answer),
        }
    }
}

/// What is reported of an API that did not give what the work needs.
fn unavailable(what: &str, problem: &ApiError) -> Failure {
    let code = if *problem == ApiError::Lost { Code::NetworkError } else { Code::InternalError };
    Failure::new(code, format!("{what}: {problem}"))
}

fn key_mode(terms: &Terms) -> &str {
    terms.api_key_mode.as_deref().unwrap_or("platform_key")
}
