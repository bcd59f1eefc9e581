//! The model's client: OpenAI-compatible chat completions.

use std::time::Duration;

use reqwest::Client;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use crate::StartError;
use crate::config::{Config, Secret};
use crate::failure::{Code, Failure};
use crate::protocol::{count, text};

/// Where and with what to call the model: for one lock's job alone (RT-CRED-74).
pub struct Credential {
    /// The provider's name
    pub provider: String,
    /// The model's name
    pub model: String,
    base_url: String,
    key: Secret,
}

impl Credential {
    /// The credential in the answer of resolve; `own` is the platform's key from the environment, which goes first
    /// (RT-CRED-11). No key at all is a failure (RT-CRED-71); an answer that does not say what to call is the API's fault.
    pub fn read(answer: &Value, own: Option<&Secret>) -> Result<Self, Failure> {
        let part = |name: &str| {
            let missing = || Failure::new(Code::InternalError, format!("the resolved credential has no {name}"));
            text(&answer[name]).ok_or_else(missing)
        };
        let key = own.cloned().or_else(|| text(&answer["apiKey"]).and_then(Secret::new));
        let key = key.ok_or_else(|| Failure::new(Code::InvalidCredential, "there is no key for the model"))?;
        Ok(Self { provider: part("provider")?, model: part("model")?, base_url: part("baseUrl")?, key })
    }
}

/// What the model said.
pub struct Completion {
    /// Its text; should it hold the key, that is replaced
    pub text: String,
    /// 0 where the provider does not say
    pub input_tokens: u64,
    /// 0 where the provider does not say
    pub output_tokens: u64,
}

/// Why a call gave no completion. Nothing of what the provider wrote is in it: that may hold the key (RT-FAIL-09).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// RT-RETRY-64
    #[error("the model did not answer in time")]
    Timeout,
    /// RT-RETRY-10
    #[error("the connection to the model broke")]
    Broken,
    /// The key can't be sent
    #[error("the key can't be a header")]
    Key,
    /// No success
    #[error("the model answered {0}")]
    Status(u16),
    /// RT-RETRY-63
    #[error("the model's answer is no completion")]
    NoCompletion,
}

impl ModelError {
    /// The class that the contract has for it (RT-RETRY-08 to 14, RT-RETRY-60 to 63).
    pub fn code(self) -> Code {
        match self {
            Self::Timeout | Self::Status(408) => Code::ModelTimeout,
            Self::Broken => Code::NetworkError,
            Self::Key | Self::Status(401..=403) => Code::InvalidCredential,
            Self::Status(429) => Code::ModelRateLimit,
            Self::Status(400..=499) => Code::ModelRequestRefused,
            Self::Status(_) | Self::NoCompletion => Code::TemporaryProviderError,
        }
    }
}

impl From<ModelError> for Failure {
    fn from(problem: ModelError) -> Self {
        Self::new(problem.code(), problem.to_string())
    }
}

/// The model's client.
pub struct Model {
    http: Client,
    timeout: Duration,
}

impl Model {
    /// A client that follows no redirect: the key would go to a stranger (RT-CRED-75).
    pub fn new(config: &Config) -> Result<Self, StartError> {
        let http = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_secs(3))
            .build()
            .map_err(|_| StartError::Client)?;
        Ok(Self { http, timeout: config.model_timeout })
    }

    /// One call (RT-CRED-73); the key is in its header alone (RT-CRED-77). To drop it is to close its connection.
    pub async fn call(&self, credential: &Credential, messages: &Value) -> Result<Completion, ModelError> {
        let key = credential.key.expose();
        let mut bearer = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| ModelError::Key)?;
        bearer.set_sensitive(true);
        let body = json!({
            "model": credential.model,
            "messages": messages,
            "response_format": {"type": "json_object"},
            "stream": false,
        });
        let request = self
            .http
            .post(format!("{}/chat/completions", credential.base_url.trim_end_matches('/')))
            .timeout(self.timeout)
            .header(AUTHORIZATION, bearer)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        let answer = request.send().await.map_err(broken)?;
        if !answer.status().is_success() {
            return Err(ModelError::Status(answer.status().as_u16()));
        }
        let body = answer.bytes().await.map_err(broken)?;
        completion(&body, key).ok_or(ModelError::NoCompletion)
    }
}

fn broken(problem: reqwest::Error) -> ModelError {
    if problem.is_timeout() { ModelError::Timeout } else { ModelError::Broken }
}

/// The completion in a body; a message without text is an empty text.
fn completion(body: &[u8], key: &str) -> Option<Completion> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let message = body["choices"].get(0)?.get("message")?.as_object()?;
    let text = message.get("content").and_then(Value::as_str).unwrap_or_default();
    Some(Completion {
        text: text.replace(key, "[redacted]"),
        input_tokens: count(&body["usage"]["prompt_tokens"]).unwrap_or(0),
        output_tokens: count(&body["usage"]["completion_tokens"]).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;

    /// A careless provider: it answers whatever `answer` says, with the Authorization header in the text.
    async fn ask(status: u16, body: &'static str) -> Result<Completion, ModelError> {
        let answer = move |headers: HeaderMap| async move {
            let key = headers[AUTHORIZATION].to_str().unwrap();
            let body = body.replace("KEY", key.trim_start_matches("Bearer "));
            (StatusCode::from_u16(status).unwrap(), [("location", "/v1/chat/completions")], body)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, Router::new().route("/v1/chat/completions", post(answer))).into_future());
        let answer = json!({"provider": "deepseek", "model": "deepseek-chat", "baseUrl": base_url, "apiKey": "sk-1"});
        let credential = Credential::read(&answer, None).unwrap();
        let http = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap();
        Model { http, timeout: Duration::from_secs(5) }.call(&credential, &json!([])).await
    }

    #[tokio::test]
    async fn a_status_is_of_its_class() {
        let classes = [
            (307, Code::TemporaryProviderError),
            (400, Code::ModelRequestRefused),
            (402, Code::InvalidCredential),
            (408, Code::ModelTimeout),
            (429, Code::ModelRateLimit),
            (503, Code::TemporaryProviderError),
        ];
        for (status, code) in classes {
            let problem = ask(status, "{\"error\": \"KEY\"}").await.err().unwrap();
            assert_eq!(problem.code(), code, "{status}");
            assert!(!Failure::from(problem).message.contains("sk-1"));
        }
        assert_eq!(ask(200, "<html>").await.err(), Some(ModelError::NoCompletion));
    }

    #[tokio::test]
    async fn a_key_in_the_text_is_replaced_and_unknown_usage_is_none() {
        let completion = ask(200, r#"{"choices": [{"message": {"content": "KEY!"}}]}"#).await.ok().unwrap();
        assert_eq!((completion.text.as_str(), completion.input_tokens), ("[redacted]!", 0));
    }

    #[test]
    fn the_platform_s_own_key_goes_first_and_no_key_is_a_failure() {
        let answer = |key: Value| json!({"provider": "p", "model": "m", "baseUrl": "http://h", "apiKey": key});
        let own = Secret::new("own").unwrap();
        assert_eq!(Credential::read(&answer(json!("sent")), Some(&own)).ok().unwrap().key.expose(), "own");
        assert_eq!(Credential::read(&answer(json!("")), None).err().unwrap().code, Code::InvalidCredential);
        assert_eq!(Credential::read(&json!({"apiKey": "sent"}), None).err().unwrap().code, Code::InternalError);
    }
}
