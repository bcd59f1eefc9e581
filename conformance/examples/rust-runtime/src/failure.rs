//! What a Runtime reports when a job does not succeed.

/// A code with the flag that the contract's table has for it, so that the two always fit (RT-FAIL-70).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The model did not answer in time (RT-RETRY-08, RT-RETRY-61)
    ModelTimeout,
    /// The model answered 429 (RT-RETRY-09)
    ModelRateLimit,
    /// A connection broke (RT-RETRY-10)
    NetworkError,
    /// The provider is not well (RT-RETRY-11)
    TemporaryProviderError,
    /// The model refused the request itself; no code of the table, so never repeated (RT-RETRY-62)
    ModelRequestRefused,
    /// The snapshot can't be used (RT-RETRY-12)
    InvalidSnapshot,
    /// The snapshot is too old; a new attempt gets a new one (RT-SNAP-60)
    SnapshotExpired,
    /// The output is not of its schema (RT-RETRY-13)
    InvalidSchema,
    /// There is no key, or the provider does not take it (RT-RETRY-14, RT-RETRY-60)
    InvalidCredential,
    /// The job took too long (RT-RETRY-15)
    JobTimeout,
    /// The user withdrew consent (RT-CANCEL-71)
    JobCancelled,
    /// Anything else that may pass
    InternalError,
}

impl Code {
    /// The code as it is written, and whether the job may be tried again.
    pub fn wire(self) -> (&'static str, bool) {
        match self {
            Self::ModelTimeout => ("MODEL_TIMEOUT", true),
            Self::ModelRateLimit => ("MODEL_RATE_LIMIT", true),
            Self::NetworkError => ("NETWORK_ERROR", true),
            Self::TemporaryProviderError => ("TEMPORARY_PROVIDER_ERROR", true),
            Self::ModelRequestRefused => ("MODEL_REQUEST_REFUSED", false),
            Self::InvalidSnapshot => ("INVALID_SNAPSHOT", false),
            Self::SnapshotExpired => ("SNAPSHOT_EXPIRED", true),
            Self::InvalidSchema => ("INVALID_SCHEMA", false),
            Self::InvalidCredential => ("INVALID_CREDENTIAL", false),
            Self::JobTimeout => ("JOB_TIMEOUT", true),
            Self::JobCancelled => ("JOB_CANCELLED", false),
            Self::InternalError => ("INTERNAL_ERROR", true),
        }
    }
}

/// A failure to report. The message is always of our own words: what others wrote may hold a key (RT-FAIL-09).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Why, for programs
    pub code: Code,
    /// Why, for people
    pub message: String,
}

impl Failure {
    /// A failure of this code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// What a job gets that is given back because the process ends (RT-HEALTH-61, RT-HEALTH-63).
    pub fn shutting_down() -> Self {
        Self::new(Code::InternalError, "the Runtime is shutting down")
    }
}

/// Why work on a job ends without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The lock is gone: not a word more about this job (RT-HB-62, RT-HB-63)
    Lost,
    /// It is to be reported
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
