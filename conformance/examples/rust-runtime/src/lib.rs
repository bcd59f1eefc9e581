//! An example Runtime: the worker that takes AI jobs from the Runtime API, calls the model and reports.
//!
//! It keeps every rule of the contract that binds a client (`RT-...`; a doc comment names those that it keeps), and
//! is meant to be read and copied. How a job goes: [`worker`] polls, [`job`] takes one job from its lock to its
//! report, [`lock`] keeps the lock alive meanwhile, [`snapshot`], [`model`] and [`output`] are the work, [`report`]
//! delivers what came of it.

pub mod api;
pub mod config;
pub mod failure;
pub mod health;
pub mod job;
pub mod lock;
pub mod logs;
pub mod model;
pub mod output;
pub mod protocol;
pub mod report;
pub mod shutdown;
pub mod snapshot;
pub mod worker;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use config::{Config, Secret};

/// How long after the signal jobs may still be at work or reporting, and then their logs: together below the 30 s of
/// RT-HEALTH-64.
const JOBS_END: Duration = Duration::from_secs(24);
const LOGS_END: Duration = Duration::from_secs(4);

/// What every job needs.
pub struct Context {
    /// The settings
    pub config: Config,
    /// The API's client
    pub api: Arc<api::Api>,
    /// The model's client
    pub model: model::Model,
    /// Where logs of model calls go
    pub logs: logs::Logs,
    /// What the health operation tells
    pub pulse: Arc<health::Pulse>,
    /// Cancelled when the process is to end
    pub shutdown: CancellationToken,
}

/// Why a Runtime did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An HTTP client could not be made of the settings
    #[error("an HTTP client can't be made of the settings")]
    Client,
    /// The health operation has no port to answer at
    #[error("health can't be served: {0}")]
    Health(#[from] std::io::Error),
}

/// Runs until `shutdown` is cancelled and what is held then has been finished or given back (RT-HEALTH-60 to 64).
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), StartError> {
    let api = Arc::new(api::Api::new(&config)?);
    let pulse = Arc::new(health::Pulse::new(&config.instance_id, shutdown.clone()));
    let _health = health::serve(config.health_port, pulse.clone()).await?; // ends when it is dropped
    let logs = logs::Logs::new(api.clone());
    let model = model::Model::new(&config)?;
    let context = Arc::new(Context { config, api, model, logs, pulse, shutdown });
    worker::work(context.clone(), JOBS_END).await;
    context.logs.drain(LOGS_END).await;
    Ok(())
}
