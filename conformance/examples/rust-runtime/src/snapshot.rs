//! The learning snapshot: whether it can be used, and what of it the model may see.

use serde_json::{Map, Value};

use crate::failure::{Code, Failure};
use crate::protocol::SNAPSHOT_VERSIONS;

/// Sections that may go to the model as a whole, where they are named.
const SECTIONS: [&str; 5] =
    ["learningBehaviorSummary", "materialProgressSummary", "behaviorSignals", "scoreSignals", "constraints"];

type OfType = fn(&Value) -> bool;

/// What may stand in a snapshot, and of which type it is then.
const FIELDS: [(&str, OfType); 9] = [
    ("/privacyScope/allowDocumentContent", Value::is_boolean),
    ("/aiSettings/allowAiAnalysis", Value::is_boolean),
    ("/userProfile/learningGoal", Value::is_string),
    ("/userProfile/currentLevel", Value::is_string),
    ("/learningBehaviorSummary/totalActiveSeconds", Value::is_number),
    ("/materialProgressSummary/progress", Value::is_number),
    ("/behaviorSignals/engagementSignal", Value::is_string),
    ("/scoreSignals/masteryRiskScore", Value::is_number),
    ("/constraints/dailyAvailableMinutes", Value::is_number),
];

/// What the model may see of a snapshot: the fields that `allowedModelFields` names, and nothing else (RT-SNAP-64).
/// A snapshot that is malformed, of an unknown version, of another job, or of a user who does not allow analysis is a
/// failure, before any model call (RT-SNAP-62, RT-SNAP-66).
pub fn visible(snapshot: &Value, job_id: &str) -> Result<Map<String, Value>, Failure> {
    let invalid = |what: &str| Failure::new(Code::InvalidSnapshot, what);
    if !SNAPSHOT_VERSIONS.iter().any(|version| snapshot["snapshotVersion"] == *version) {
        return Err(invalid("the snapshot's version is not known"));
    }
    if snapshot["jobId"] != job_id || !snapshot["snapshotId"].is_string() {
        return Err(invalid("the snapshot is not the job's"));
    }
    let sections = SECTIONS.iter().chain(&["privacyScope", "userProfile", "aiSettings"]);
    let well_formed = sections.into_iter().all(|section| snapshot[*section].is_object())
        && FIELDS.iter().all(|(pointer, of_type)| snapshot.pointer(pointer).is_none_or(of_type));
    if !well_formed {
        return Err(invalid("the snapshot is malformed"));
    }
    let names = snapshot["allowedModelFields"].as_array().map(|names| names.iter().map(Value::as_str).collect());
    let Some(Some(names)): Option<Option<Vec<&str>>> = names else {
        return Err(invalid("the snapshot does not say what the model may see"));
    };
    if snapshot["aiSettings"]["allowAiAnalysis"] == false {
        return Err(invalid("the user does not allow analysis by AI"));
    }
    let see = |name: &str| match name {
        "documentContent" if snapshot["privacyScope"]["allowDocumentContent"] != true => None, // RT-SNAP-65
        "documentContent" => snapshot.get(name),
        _ if SECTIONS.contains(&name) => snapshot.get(name),
        _ => snapshot["userProfile"].get(name),
    };
    Ok(names.into_iter().filter_map(|name| Some((name.to_owned(), see(name)?.clone()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn snapshot() -> Value {
        json!({
            "jobId": "job-1", "snapshotId": "snap-1", "snapshotVersion": "ai_snapshot_v1",
            "privacyScope": {"allowDocumentContent": true}, "userProfile": {"learningGoal": "exam", "nickname": "canary"},
            "aiSettings": {"allowAiAnalysis": true}, "learningBehaviorSummary": {}, "materialProgressSummary": {},
            "behaviorSignals": {}, "scoreSignals": {"masteryRiskScore": 0.3}, "constraints": {},
            "allowedModelFields": ["learningGoal", "scoreSignals", "documentContent", "aiSettings"], "documentContent": ["text"],
        })
    }

    fn spoilt(pointer: &str, value: Value) -> Result<Map<String, Value>, Failure> {
        let mut snapshot = snapshot();
        *snapshot.pointer_mut(pointer).unwrap() = value;
        visible(&snapshot, "job-1")
    }

    #[test]
    fn the_model_sees_what_is_named_alone() {
        let seen = Value::Object(visible(&snapshot(), "job-1").unwrap());
        let named =
            json!({"learningGoal": "exam", "scoreSignals": {"masteryRiskScore": 0.3}, "documentContent": ["text"]});
        assert_eq!(seen, named);
    }

    #[test]
    fn document_content_needs_both() {
        assert!(!spoilt("/privacyScope", json!({})).unwrap().contains_key("documentContent"));
        assert!(spoilt("/allowedModelFields", json!([])).unwrap().is_empty());
    }

    #[test]
    fn what_can_t_be_used_is_a_failure() {
        let ill = [
            ("/jobId", json!("job-2")),
            ("/snapshotVersion", json!("ai_snapshot_v2")),
            ("/userProfile", json!([])),
            ("/allowedModelFields", json!(["learningGoal", 1])),
            ("/scoreSignals/masteryRiskScore", json!("0.3")),
            ("/aiSettings/allowAiAnalysis", json!(false)),
        ];
        for (pointer, value) in ill {
            assert_eq!(spoilt(pointer, value).unwrap_err().code, Code::InvalidSnapshot, "{pointer}");
        }
        assert!(visible(&json!("text"), "job-1").is_err());
    }
}
