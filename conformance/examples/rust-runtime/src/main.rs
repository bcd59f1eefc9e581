//! The process around the library: signals first, then settings, then work.

use std::process::ExitCode;

use example_runtime::{Config, run, shutdown};

#[tokio::main]
async fn main() -> ExitCode {
    let Ok(stop) = shutdown::on_signals() else {
        eprintln!("signals can't be received");
        return ExitCode::FAILURE;
    };
    // The level is fixed: below INFO the HTTP libraries would write headers, and with them the keys (RT-CRED-78).
    tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_writer(std::io::stderr).init();
    let config = match Config::from_env() {
        Ok(config) => config,
        Err(problem) => {
            tracing::error!(%problem, "not started");
            return ExitCode::from(2);
        }
    };
    match run(config, stop).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            tracing::error!(%problem, "not started");
            ExitCode::FAILURE
        }
    }
}
