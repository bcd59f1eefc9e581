//! The mock for tests: one `contract serve` for all tests of a file, and for each test a world of its own in it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use example_runtime::{Config, run};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The server, started once. It ends by itself when this process does, since its standard input is closed then.
static SERVER: OnceLock<(Child, String)> = OnceLock::new();

/// Starts `contract serve` (`CONTRACT_COMMAND` says what to run instead of `contract`) and reads where it answers.
fn server() -> &'static str {
    let (_, base_url) = SERVER.get_or_init(|| {
        let command = std::env::var("CONTRACT_COMMAND").unwrap_or_else(|_| "contract".into());
        let mut words = command.split_whitespace();
        let mut child = Command::new(words.next().expect("CONTRACT_COMMAND is empty"))
            .args(words)
            .args(["serve", "--port", "0", "--until-eof", "--api-key", TOKEN])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`contract` can't be started: install it, or say in CONTRACT_COMMAND how");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("`contract serve` did not get ready");
        let base_url = ready["baseUrl"].as_str().unwrap().to_owned();
        (child, base_url)
    });
    base_url
}

/// A universe for one test: jobs, clock, faults and journal of its own, on a port of its own.
pub struct World {
    base_url: String,
    http: Client,
}

impl World {
    /// Makes a world whose locks last `lock` seconds; `model` says what its model provider answers, call by call.
    pub async fn new(lock: f64, model: Value) -> Self {
        let http = Client::builder().no_proxy().build().unwrap();
        let mut world = Self { base_url: server().into(), http };
        let options = json!({"port": true, "timing": {"lock": lock}, "model": [{"calls": [model]}]});
        world.base_url = world.control("worlds", options).await["baseUrl"].as_str().unwrap().into();
        world
    }

    /// Puts the world into a provider state, such as `job`, and returns its values.
    pub async fn state(&self, state: &str, params: Value) -> Value {
        self.control("provider-states/runtime-api", json!({"action": "setup", "state": state, "params": params})).await
    }

    /// Adds a fault plan: what goes wrong between the API and the Runtime.
    pub async fn fault(&self, plan: Value) {
        self.control("faults", plan).await;
    }

    /// Holds expectations against what came over the wire; waits up to 15 s until they hold. It panics with the
    /// mock's own words about what differs.
    pub async fn verify(&self, expectations: Value) {
        let answer = self.control("verify", json!({"waitSeconds": 15, "expectations": expectations})).await;
        assert_eq!(answer["verdict"], "ok", "{}", answer["message"]);
    }

    /// Starts a Runtime in this process against this world. `heartbeat` is a quarter of the lock's length.
    pub fn runtime(&self, heartbeat: Duration) -> Running {
        let config = Config {
            poll_interval: Duration::from_millis(100),
            heartbeat_interval: heartbeat,
            model_timeout: Duration::from_secs(20),
            drain: Duration::from_millis(500),
            ..Config::from_lookup(|name| match name {
                "API_BASE_URL" => Some(self.base_url.clone()),
                "RUNTIME_SERVICE_TOKEN" => Some(TOKEN.into()),
                "RUNTIME_INSTANCE_ID" => Some("runtime-1".into()),
                _ => None,
            })
            .unwrap()
        };
        let shutdown = CancellationToken::new();
        Running { task: tokio::spawn(run(config, shutdown.clone())), shutdown }
    }

    async fn control(&self, path: &str, body: Value) -> Value {
        let request = self.http.post(format!("{}/__control__/{path}", self.base_url));
        let answer = request.header("content-type", "application/json").body(body.to_string()).send().await.unwrap();
        let ok = answer.status().is_success();
        let text = answer.text().await.unwrap();
        assert!(ok, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

const TOKEN: &str = "token-of-the-tests";

/// A Runtime that runs.
pub struct Running {
    task: JoinHandle<Result<(), example_runtime::StartError>>,
    shutdown: CancellationToken,
}

impl Running {
    /// What SIGTERM does; returns when the Runtime has ended.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
    }
}
