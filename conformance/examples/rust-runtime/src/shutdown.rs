//! The signals that end the process.

use std::io;

use tokio_util::sync::CancellationToken;

/// A token that SIGTERM or SIGINT cancels, from this moment on; further signals change nothing (RT-HEALTH-60).
#[cfg(unix)]
pub fn on_signals() -> io::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!("shutting down");
        stop.cancel(); // the handlers stay installed for the life of the process, so a second signal does not kill it
    });
    Ok(token)
}

/// A token that Ctrl-C cancels.
#[cfg(not(unix))]
pub fn on_signals() -> io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    Ok(token)
}
