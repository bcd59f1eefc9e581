//! What the API's answers say, read with tolerance: an unknown or ill-typed property is passed over, never a reason to
//! stop (RT-ERR-85, RT-POLL-73).

use serde_json::Value;

/// The snapshot versions that this Runtime reads.
pub const SNAPSHOT_VERSIONS: [&str; 1] = ["ai_snapshot_v1"];
/// The output versions that this Runtime writes.
pub const OUTPUT_VERSIONS: [&str; 3] = ["analysis_output_v1", "quiz_output_v1", "flashcard_output_v1"];

/// A kind of job that this Runtime does (RT-POLL-71, RT-POLL-72).
#[derive(Debug, PartialEq)]
pub struct Kind {
    /// `jobType`
    pub name: &'static str,
    /// The output version of a job that names none
    pub output: &'static str,
    /// What the model is asked to do
    pub task: &'static str,
}

/// Every kind of job.
pub const KINDS: [Kind; 5] = [
    Kind {
        name: "learning_state_analysis",
        output: "analysis_output_v1",
        task: "Judge the state of the learner's studies.",
    },
    Kind {
        name: "weak_point_analysis",
        output: "analysis_output_v1",
        task: "Find the points in which the learner is weak.",
    },
    Kind {
        name: "next_action_planning",
        output: "analysis_output_v1",
        task: "Recommend what the learner should do next.",
    },
    Kind { name: "quiz_generation", output: "quiz_output_v1", task: "Write a quiz for the learner." },
    Kind { name: "flashcard_generation", output: "flashcard_output_v1", task: "Write flashcards for the learner." },
];

/// What poll entry and lock answer both say of a job; the lock answer counts, the entry fills the gaps.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// Which attempt this is (RT-RES-80)
    pub attempt_no: Option<u64>,
    /// `platform_key` or `user_deepseek_key`
    pub api_key_mode: Option<String>,
    /// Whose key
    pub credential_id: Option<String>,
    /// Which provider
    pub provider: Option<String>,
    /// How long the job may take
    pub timeout_seconds: Option<u64>,
    /// The job's own input
    pub params: Option<Value>,
}

impl Terms {
    /// The terms in a poll entry or lock answer.
    pub fn read(body: &Value) -> Self {
        Self {
            attempt_no: count(&body["attemptNo"]),
            api_key_mode: text(&body["apiKeyMode"]),
            credential_id: text(&body["credentialId"]),
            provider: text(&body["modelProvider"]),
            timeout_seconds: count(&body["timeoutSeconds"]),
            params: Some(body["params"].clone()).filter(Value::is_object),
        }
    }

    /// These terms, with those of `other` where these say nothing.
    pub fn or(self, other: Self) -> Self {
        Self {
            attempt_no: self.attempt_no.or(other.attempt_no),
            api_key_mode: self.api_key_mode.or(other.api_key_mode),
            credential_id: self.credential_id.or(other.credential_id),
            provider: self.provider.or(other.provider),
            timeout_seconds: self.timeout_seconds.or(other.timeout_seconds),
            params: self.params.or(other.params),
        }
    }
}

/// A job as a poll lists it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The job's id
    pub id: String,
    /// What kind of job it is
    pub kind: &'static Kind,
    /// `promptVersion`, for the logs alone
    pub prompt_version: Option<String>,
    /// The output version that the job wants (RT-RES-88)
    pub output_version: &'static str,
    /// What the lock answer says again
    pub terms: Terms,
}

impl Entry {
    /// The entry, or None where it has no id, or a type or version that this Runtime does not know: such a job is
    /// another Runtime's, and left alone.
    pub fn read(body: &Value) -> Option<Self> {
        let kind = KINDS.iter().find(|kind| body["jobType"] == kind.name)?;
        let output_version = match &body["outputSchemaVersion"] {
            Value::Null => kind.output,
            wanted => OUTPUT_VERSIONS.into_iter().find(|version| wanted == version)?,
        };
        Some(Self {
            id: text(&body["id"])?,
            kind,
            prompt_version: text(&body["promptVersion"]),
            output_version,
            terms: Terms::read(body),
        })
    }
}

/// A text that is not empty.
pub fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(Into::into)
}

/// A whole number that is not negative, `1.0` included.
pub fn count(value: &Value) -> Option<u64> {
    let whole = |number: &f64| number.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(number);
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|number| number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_of_an_unknown_kind_or_version_is_left_alone() {
        assert!(Entry::read(&json!({"id": "j", "jobType": "poetry"})).is_none());
        let newer = json!({"id": "j", "jobType": "quiz_generation", "outputSchemaVersion": "quiz_output_v9"});
        assert!(Entry::read(&newer).is_none());
        assert!(Entry::read(&json!(null)).is_none());
    }

    #[test]
    fn what_is_ill_typed_counts_as_not_said() {
        let entry = json!({"id": "j", "jobType": "quiz_generation", "attemptNo": 2.0, "params": [], "more": 1});
        let terms = Terms::read(&json!({"attemptNo": "7"})).or(Entry::read(&entry).unwrap().terms);
        assert_eq!(terms.attempt_no, Some(2));
        assert_eq!(terms.params, None);
    }
}
