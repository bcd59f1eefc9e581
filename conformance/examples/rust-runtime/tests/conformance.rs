//! The Runtime against the mock: each test makes a world, puts jobs into it, runs the Runtime in this process and
//! asks the mock what it saw. Needs the command `contract` (see `mock::server`).

mod mock;

use std::time::Duration;

use mock::World;
use serde_json::json;

const HEARTBEAT: Duration = Duration::from_millis(750);
const LOCK: f64 = 3.0; // seconds: four heartbeats

#[tokio::test]
async fn a_job_is_locked_kept_alive_and_done_in_order() {
    let world = World::new(LOCK, json!({"kind": "good", "afterSeconds": 2.5})).await;
    let job = world.state("job", json!({"jobType": "quiz_generation", "params": {"questions": 3}})).await;
    let id = &job["jobId"];
    let runtime = world.runtime(HEARTBEAT);

    world
        .verify(json!([
            {"name": "in the protocol's order", "calls": {"jobId": id}, "order": [
                {"operationId": "lockJob", "status": 200},
                {"operationId": "getSnapshot", "status": 200},
                {"operationId": "resolveCredential", "status": 200},
                {"operationId": "submitResult", "status": 201}]},
            {"name": "heartbeats in time", "calls": {"operationId": "heartbeatJob", "jobId": id, "status": 204},
             "after": {"operationId": "lockJob", "jobId": id}, "before": {"operationId": "submitResult"},
             "count": {"atLeast": 3}, "maxGapSeconds": LOCK / 2.0},
            {"name": "the result of this attempt", "calls": {"operationId": "submitResult"}, "count": {"exactly": 1},
             "every": {"requestBody": {"schemaVersion": "quiz_output_v1", "attemptNo": 0}}},
            {"name": "its log", "calls": {"operationId": "submitInvocationLogs", "status": 201}, "count": {"exactly": 1}},
            {"name": "snapshots are asked for by name", "calls": {"operationId": "getSnapshot"},
             "every": {"requestHeaders": {"x-runtime-instance-id": "runtime-1"}}},
        ]))
        .await;
    runtime.stop().await;
    assert_eq!(world.state("inspect-job", json!({"jobId": id})).await["status"], "succeeded");
}

#[tokio::test]
async fn a_result_whose_answer_is_lost_is_sent_again() {
    let world = World::new(LOCK, json!({"kind": "good"})).await;
    world
        .fault(json!({"match": {"operationId": "submitResult"}, "when": {"nth": [1]},
                      "fault": {"kind": "reset", "at": "after-commit"}}))
        .await;
    world.state("job", json!({})).await;
    let runtime = world.runtime(HEARTBEAT);

    world
        .verify(json!([
            {"name": "stored, then known as stored", "calls": {"operationId": "submitResult"},
             "count": {"exactly": 2}, "last": {"status": 200}},
            {"name": "no failure", "calls": {"operationId": "failJob"}, "count": {"exactly": 0}},
        ]))
        .await;
    runtime.stop().await;
}

#[tokio::test]
async fn a_cancelled_job_is_stopped_in_the_middle_of_its_model_call() {
    let world = World::new(LOCK, json!({"kind": "hang"})).await;
    let job = world.state("job", json!({"userId": "user-7"})).await;
    let runtime = world.runtime(HEARTBEAT);
    world.verify(json!([{"calls": {"operationId": "heartbeatJob", "status": 204}}])).await;
    world.state("revoke-ai-consent", json!({"userId": "user-7"})).await;

    world
        .verify(json!([
            {"name": "reported", "calls": {"operationId": "failJob", "status": 200}, "count": {"exactly": 1},
             "every": {"requestBody": {"errorCode": "JOB_CANCELLED", "retryable": false}}},
            {"name": "the aborted call's log", "calls": {"operationId": "submitInvocationLogs", "status": 201},
             "count": {"exactly": 1}},
        ]))
        .await;
    runtime.stop().await;
    assert_eq!(world.state("inspect-job", json!({"jobId": job["jobId"]})).await["status"], "cancelled");
}

#[tokio::test]
async fn what_is_held_at_the_shutdown_is_given_back() {
    let world = World::new(LOCK, json!({"kind": "hang"})).await;
    let job = world.state("job", json!({})).await;
    let runtime = world.runtime(HEARTBEAT);
    world.verify(json!([{"calls": {"operationId": "resolveCredential", "status": 200}}])).await;
    runtime.stop().await;

    world
        .verify(json!([
            {"calls": {"operationId": "failJob", "status": 200}, "count": {"exactly": 1},
             "every": {"requestBody": {"retryable": true}}},
        ]))
        .await;
    assert_eq!(world.state("inspect-job", json!({"jobId": job["jobId"]})).await["status"], "pending");
}
