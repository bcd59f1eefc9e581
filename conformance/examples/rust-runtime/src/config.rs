//! The settings, from the environment.

use std::fmt;
use std::time::Duration;

use reqwest::Url;

/// The longest lock that the contract knows (RT-TIME-01).
const LOCK: Duration = Duration::from_secs(60);

/// A key or token: it can be read on purpose, never be printed by accident (RT-AUTH-63, RT-CRED-78).
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A secret with this value; None where it is empty.
    pub fn new(value: impl Into<String>) -> Option<Self> {
        Some(value.into()).filter(|value| !value.is_empty()).map(Self)
    }

    /// The value itself, for the one header where it belongs.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[secret]")
    }
}

/// How a Runtime is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// `API_BASE_URL`: where the Runtime API is
    pub api: Url,
    /// `RUNTIME_SERVICE_TOKEN`
    pub token: Secret,
    /// `RUNTIME_INSTANCE_ID`: the same in every header and body (RT-AUTH-60)
    pub instance_id: String,
    /// `RUNTIME_HEALTH_PORT` on 127.0.0.1; health is not served where it is None
    pub health_port: Option<u16>,
    /// `POLL_INTERVAL_MS`
    pub poll_interval: Duration,
    /// `HEARTBEAT_INTERVAL_MS`: a quarter of the lock's length
    pub heartbeat_interval: Duration,
    /// `MODEL_TIMEOUT_MS` of one model call
    pub model_timeout: Duration,
    /// `PLATFORM_MODEL_API_KEY`, used first where a job asks for the platform's key (RT-CRED-11, RT-CRED-76)
    pub platform_key: Option<Secret>,
    /// `RUNTIME_SLOTS`: how many jobs run at once
    pub slots: usize,
    /// How long model calls may go on after the signal to end
    pub drain: Duration,
}

/// Why the settings can't be used. It names the variable, never its value.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A variable that has no default is not set
    #[error("{0} is not set")]
    Missing(&'static str),
    /// A variable has a value that can't be used
    #[error("{0} must be {1}")]
    Invalid(&'static str, &'static str),
}

impl Config {
    /// The settings from the process's environment.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// The settings from any place of names and values; an empty value counts as none.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let read = |name| lookup(name).filter(|value| !value.is_empty());
        let required = |name| read(name).ok_or(ConfigError::Missing(name));
        let number = |name, default: u64| match read(name) {
            None => Ok(default),
            Some(text) => match text.parse::<u32>() {
                Ok(value) if value > 0 => Ok(u64::from(value)),
                _ => Err(ConfigError::Invalid(name, "a whole number above 0")),
            },
        };
        let millis = |name, default| number(name, default).map(Duration::from_millis);
        let api = Url::parse(&required("API_BASE_URL")?).ok();
        let api = api.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let health_port = match read("RUNTIME_HEALTH_PORT").map(|text| text.parse()) {
            None => None,
            Some(Ok(port)) => Some(port),
            Some(Err(_)) => return Err(ConfigError::Invalid("RUNTIME_HEALTH_PORT", "a port")),
        };
        let instance_id = required("RUNTIME_INSTANCE_ID")?;
        if instance_id.len() > 128 || !instance_id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigError::Invalid("RUNTIME_INSTANCE_ID", "1 to 128 printable ASCII characters"));
        }
        Ok(Self {
            api: api.ok_or(ConfigError::Invalid("API_BASE_URL", "an http or https URL"))?,
            token: Secret(required("RUNTIME_SERVICE_TOKEN")?),
            instance_id,
            health_port,
            poll_interval: millis("POLL_INTERVAL_MS", 5_000)?,
            heartbeat_interval: millis("HEARTBEAT_INTERVAL_MS", 15_000)?,
            model_timeout: millis("MODEL_TIMEOUT_MS", 60_000)?,
            platform_key: read("PLATFORM_MODEL_API_KEY").map(Secret),
            slots: number("RUNTIME_SLOTS", 4)? as usize,
            drain: Duration::from_secs(12),
        })
    }

    /// How long a lock holds after a heartbeat was sent. It is known as a duration, four heartbeats, and not read from
    /// `lockUntil`, which another machine's clock says (RT-HB-60). A twentieth is kept back: a report that is sent in
    /// the lock's last moment would come too late.
    pub fn lock_length(&self) -> Duration {
        LOCK.min(self.heartbeat_interval * 4) * 19 / 20
    }

    /// The time between two heartbeats: so much below the lock's length that a failed one can be repeated (RT-HB-61).
    pub fn beat(&self) -> Duration {
        self.heartbeat_interval.min(LOCK / 3)
    }

    /// How long an answer of the API is waited for; below the lock's length, whatever that is.
    pub fn api_timeout(&self) -> Duration {
        Duration::from_secs(5).min(self.beat() * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Config, ConfigError> {
        Config::from_lookup(|asked| match asked {
            _ if asked == name => Some(value.into()),
            "API_BASE_URL" => Some("http://127.0.0.1:1".into()),
            "RUNTIME_SERVICE_TOKEN" | "RUNTIME_INSTANCE_ID" => Some("word".into()),
            _ => None,
        })
    }

    #[test]
    fn the_lock_is_four_heartbeats_long_and_never_above_a_minute() {
        let long = |millis| with("HEARTBEAT_INTERVAL_MS", millis).unwrap().lock_length();
        assert_eq!(long("750"), Duration::from_millis(2850));
        assert_eq!(long("90000"), Duration::from_secs(57));
    }

    #[test]
    fn zero_is_no_interval() {
        let problem = with("POLL_INTERVAL_MS", "0").unwrap_err().to_string();
        assert_eq!(problem, "POLL_INTERVAL_MS must be a whole number above 0");
    }

    #[test]
    fn secrets_are_not_printed() {
        let config = with("PLATFORM_MODEL_API_KEY", "sk-very-secret").unwrap();
        assert!(!format!("{config:?}").contains("sk-very"));
    }
}
