//! The model's output: what it has to look like, and its hash.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::failure::{Code, Failure};

/// The JSON Schema of an output version, in the words that go to the model (`x-output-schemas` of the contract).
pub fn schema(version: &str) -> &'static str {
    match version {
        "quiz_output_v1" => {
            r#"{"type":"object","required":["questions"],"properties":{"questions":{"type":"array","minItems":1,"items":{"type":"object","required":["question","answer"],"properties":{"question":{"type":"string"},"options":{"type":"array","items":{"type":"string"}},"answer":{"type":"string"},"explanation":{"type":"string"}}}}}}"#
        }
        "flashcard_output_v1" => {
            r#"{"type":"object","required":["cards"],"properties":{"cards":{"type":"array","minItems":1,"items":{"type":"object","required":["front","back"],"properties":{"front":{"type":"string"},"back":{"type":"string"}}}}}}"#
        }
        _ => {
            r#"{"type":"object","properties":{"learningState":{"type":"string"},"riskLevel":{"type":"string"},"confidence":{"type":"number","minimum":0,"maximum":1},"weakPoints":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"knowledgePointId":{"type":"string"},"severity":{"type":"string"},"reason":{"type":"string"}}}},"recommendations":{"type":"array","items":{"type":"object","required":["action"],"properties":{"action":{"type":"string"},"reason":{"type":"string"},"estimatedMinutes":{"type":"number","minimum":0}}}}}}"#
        }
    }
}

/// The output in the model's text. Prose, cut-off JSON, an empty text, JSON that is no object, and an object of another
/// schema are failures (RT-RETRY-13, RT-RETRY-65).
pub fn validate(text: &str, version: &str) -> Result<Value, Failure> {
    let invalid = |what: &str| Failure::new(Code::InvalidSchema, what);
    let output: Value = serde_json::from_str(text).map_err(|_| invalid("the output is no JSON"))?;
    if !output.is_object() {
        return Err(invalid("the output is no JSON object"));
    }
    let fits = match version {
        "quiz_output_v1" => list(&output, "questions", true, |question| {
            word(question, "question")
                && word(question, "answer")
                && maybe(question, "options", |options| {
                    options.as_array().is_some_and(|all| all.iter().all(Value::is_string))
                })
                && maybe(question, "explanation", Value::is_string)
        }),
        "flashcard_output_v1" => list(&output, "cards", true, |card| word(card, "front") && word(card, "back")),
        _ => {
            maybe(&output, "learningState", Value::is_string)
                && maybe(&output, "riskLevel", Value::is_string)
                && maybe(&output, "confidence", |value| value.as_f64().is_some_and(|part| (0.0..=1.0).contains(&part)))
                && list(&output, "weakPoints", false, |point| {
                    word(point, "name")
                        && ["knowledgePointId", "severity", "reason"]
                            .iter()
                            .all(|name| maybe(point, name, Value::is_string))
                })
                && list(&output, "recommendations", false, |advice| {
                    word(advice, "action")
                        && maybe(advice, "reason", Value::is_string)
                        && maybe(advice, "estimatedMinutes", |value| {
                            value.as_f64().is_some_and(|minutes| minutes >= 0.0)
                        })
                })
        }
    };
    if fits { Ok(output) } else { Err(invalid("the output is not of its schema")) }
}

/// The hash of an output: of its canonical JSON (names sorted, no spaces), so of nothing else (RT-RES-81, RT-RES-82).
pub fn hash(output: &Value) -> String {
    let mut canonical = output.clone();
    canonical.sort_all_objects();
    let digest = Sha256::digest(canonical.to_string());
    format!("sha256-{digest:x}")
}

/// The field is a text that is not empty.
fn word(object: &Value, name: &str) -> bool {
    object[name].as_str().is_some_and(|text| !text.is_empty())
}

/// The field fits, or is not there.
fn maybe(object: &Value, name: &str, fits: impl Fn(&Value) -> bool) -> bool {
    object.get(name).is_none_or(fits)
}

/// The field is a list of objects that fit; where it is `required`, it is there and not empty.
fn list(object: &Value, name: &str, required: bool, fits: impl Fn(&Value) -> bool) -> bool {
    match object.get(name) {
        None => !required,
        Some(value) => value.as_array().is_some_and(|items| {
            !(required && items.is_empty()) && items.iter().all(|item| item.is_object() && fits(item))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_of_its_schema_is_taken() {
        assert!(validate(r#"{"learningState": "in_progress", "more": 1}"#, "analysis_output_v1").is_ok());
        assert!(validate(r#"{"questions": [{"question": "?", "answer": "!"}]}"#, "quiz_output_v1").is_ok());
        assert!(validate(r#"{"cards": [{"front": "a", "back": "b"}]}"#, "flashcard_output_v1").is_ok());
    }

    #[test]
    fn anything_else_is_not() {
        for text in ["", "I can't do that.", r#"{"cards": [{"front""#, "[]", "null", "{}", r#"{"cards": []}"#] {
            assert_eq!(validate(text, "flashcard_output_v1").unwrap_err().code, Code::InvalidSchema, "{text}");
        }
        assert!(validate(r#"{"confidence": 2}"#, "analysis_output_v1").is_err());
        assert!(validate(r#"{"weakPoints": [{}]}"#, "analysis_output_v1").is_err());
    }

    #[test]
    fn the_hash_is_of_the_output_alone() {
        let hash_of = |text| hash(&serde_json::from_str(text).unwrap());
        assert_eq!(hash_of(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#), hash_of(r#"{"b":{"d":3,"c":2},"a":1}"#));
        assert_ne!(hash_of(r#"{"a": 1}"#), hash_of(r#"{"a": 2}"#));
    }
}
