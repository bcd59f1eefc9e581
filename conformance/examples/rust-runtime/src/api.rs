//! The Runtime API's client: one method an operation, and what its answers mean.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Url};
use serde_json::{Value, json};

use crate::config::Config;
use crate::protocol::{Entry, KINDS, OUTPUT_VERSIONS, SNAPSHOT_VERSIONS, Terms};
use crate::{StartError, logs};

/// Why a call did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// 4xx. An unknown code is judged by the status (RT-ERR-84)
    #[error("refused with {status} {code}")]
    Refused {
        /// The HTTP status
        status: u16,
        /// `errorCode`, empty where there is none
        code: String,
    },
    /// 5xx, a rate limit, or no status that the contract knows: it may pass
    #[error("answered {0}")]
    Unavailable(u16),
    /// A success whose body can't be read
    #[error("answered with a body that can't be read")]
    Malformed,
    /// No answer: whether the call was handled is not known
    #[error("no answer came")]
    Lost,
}

/// A call's success.
struct Answer {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Result<Value, ApiError> {
        serde_json::from_slice(&self.body).map_err(|_| ApiError::Malformed)
    }
}

/// The two reports of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// RT-RES-01
    Result,
    /// RT-FAIL-01
    Fail,
}

/// The API's client.
pub struct Api {
    http: Client,
    base: Url,
    instance_id: String,
}

impl Api {
    /// A client whose every request has both headers (RT-AUTH-02, RT-AUTH-04), and which follows no redirect with them.
    pub fn new(config: &Config) -> Result<Self, StartError> {
        let header = |value: &str| HeaderValue::from_str(value).map_err(|_| StartError::Client);
        let mut token = header(config.token.expose())?;
        token.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            ("x-internal-api-key".parse().expect("a header's name"), token),
            ("x-runtime-instance-id".parse().expect("a header's name"), header(&config.instance_id)?),
        ]);
        let http = Client::builder()
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(config.api_timeout())
            .pool_idle_timeout(Duration::from_secs(3)) // below what servers keep: a reused connection is rarely a dead one
            .no_proxy() // the API is internal
            .build()
            .map_err(|_| StartError::Client)?;
        Ok(Self { http, base: config.api.clone(), instance_id: config.instance_id.clone() })
    }

    /// The id that goes into bodies (RT-AUTH-60).
    pub fn instance_id(&self) -> &str {
        &self.instance_id
    }

    /// Jobs that wait (RT-POLL-01 to 07). An odd way to say "none" is none: 204, no `jobs`, `jobs` null.
    pub async fn poll(&self, limit: usize) -> Result<Vec<Entry>, ApiError> {
        let body = json!({
            "runtimeInstanceId": self.instance_id,
            "supportedJobTypes": KINDS.map(|kind| kind.name),
            "limit": limit,
            "capabilities": {
                "supportedSnapshotVersions": SNAPSHOT_VERSIONS,
                "supportedOutputSchemaVersions": OUTPUT_VERSIONS,
            },
        });
        let answer = self.post(&["jobs", "poll"], &body).await?;
        if answer.body.is_empty() {
            return Ok(Vec::new());
        }
        match &answer.json()?["jobs"] {
            Value::Null => Ok(Vec::new()),
            Value::Array(jobs) => Ok(jobs.iter().filter_map(Entry::read).collect()),
            _ => Err(ApiError::Malformed),
        }
    }

    /// Locks a job (RT-LOCK-01, RT-LOCK-02). A success is a lock even where its body can't be read: the poll entry says the same.
    pub async fn lock(&self, job_id: &str) -> Result<Terms, ApiError> {
        let answer = self.post(&["jobs", job_id, "lock"], &self.caller()).await?;
        Ok(answer.json().map(|body| Terms::read(&body)).unwrap_or_default())
    }

    /// Extends a lock (RT-HB-01, RT-HB-02) and says whether the job is to be stopped (RT-HB-09).
    pub async fn heartbeat(&self, job_id: &str) -> Result<bool, ApiError> {
        let answer = self.post(&["jobs", job_id, "heartbeat"], &self.caller()).await?;
        Ok(answer.headers.get("x-job-cancel-requested").is_some_and(|value| value == "true"))
    }

    /// Reads the snapshot (RT-SNAP-01).
    pub async fn snapshot(&self, job_id: &str) -> Result<Value, ApiError> {
        self.send(Method::GET, &["jobs", job_id, "snapshot"], None).await?.json()
    }

    /// Resolves the credential (RT-CRED-01, RT-CRED-02).
    pub async fn resolve(&self, body: &Value) -> Result<Value, ApiError> {
        self.post(&["model-credentials", "resolve"], body).await?.json()
    }

    /// Sends a report. The body is bytes, so that the same report is the same bytes (RT-RES-85, RT-FAIL-71).
    pub async fn report(&self, job_id: &str, report: Report, body: Vec<u8>) -> Result<(), ApiError> {
        let name = match report {
            Report::Result => "result",
            Report::Fail => "fail",
        };
        self.send(Method::POST, &["jobs", job_id, name], Some(body)).await.map(|_| ())
    }

    /// Submits the log of a model call (RT-LOG-01, RT-LOG-02).
    pub async fn log(&self, log: &logs::Log) -> Result<(), ApiError> {
        self.post(&["invocation-logs"], &json!({"logs": [log]})).await.map(|_| ())
    }

    fn caller(&self) -> Value {
        json!({"runtimeInstanceId": self.instance_id})
    }

    async fn post(&self, path: &[&str], body: &Value) -> Result<Answer, ApiError> {
        self.send(Method::POST, path, Some(body.to_string().into_bytes())).await
    }

    async fn send(&self, method: Method, path: &[&str], body: Option<Vec<u8>>) -> Result<Answer, ApiError> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .expect("an http URL has a path")
            .pop_if_empty()
            .extend(["internal", "runtime"])
            .extend(path); // each segment is escaped: an id can't lead out of /internal/runtime (RT-AUTH-64)
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let answer = request.send().await.map_err(|_| ApiError::Lost)?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = answer.bytes().await.map(Vec::from);
        match status {
            200..=299 => Ok(Answer { headers, body: body.map_err(|_| ApiError::Lost)? }),
            400..=499 if !matches!(status, 408 | 429) => {
                Err(ApiError::Refused { status, code: error_code(&body.unwrap_or_default()) })
            }
            _ => Err(ApiError::Unavailable(status)),
        }
    }
}

/// The `errorCode` of an error body; only what looks like one, since it goes into our own output.
fn error_code(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let code = body["errorCode"].as_str().unwrap_or_default();
    let fits = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if fits { code.to_owned() } else { String::new() }
}
