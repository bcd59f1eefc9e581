"""What the model is told: a task by the job's type, and of the user's data what may reach it, nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime.inputs import SHARED_SECTIONS, Snapshot

if TYPE_CHECKING:
    from conformance.examples.python_runtime.jobs import Job

_TASKS = {
    "learning_state_analysis": "Judge the state of learning.",
    "weak_point_analysis": "Find the weak points.",
    "next_action_planning": "Recommend what to do next.",
    "quiz_generation": "Write a quiz.",
    "flashcard_generation": "Write flashcards.",
}
_SHAPES = {
    "analysis_output_v1": '{"learningState": "...", "riskLevel": "...", "weakPoints": [{"name": "..."}], '
    '"recommendations": [{"action": "..."}]}, each of them optional',
    "quiz_output_v1": '{"questions": [{"question": "...", "options": ["..."], "answer": "..."}]}',
    "flashcard_output_v1": '{"cards": [{"front": "...", "back": "..."}]}',
}


class Prompt:
    """Makes messages."""

    def messages(self, job: Job, snapshot: Snapshot) -> list[dict[str, str]]:
        """The messages of a model call."""
        task = f"{_TASKS[job.type]} Answer with one JSON object alone: {_SHAPES[job.output_version]}"
        data = json.dumps(self.data(job, snapshot), ensure_ascii=False, sort_keys=True)
        return [{"role": "system", "content": task}, {"role": "user", "content": data}]

    def data(self, job: Job, snapshot: Snapshot) -> dict[str, Any]:
        """What is named, and the job's parameters (RT-SNAP-64)."""
        names = snapshot["allowedModelFields"]
        data: dict[str, Any] = {
            "userProfile": {name: value for name, value in snapshot["userProfile"].items() if name in names}
        }
        data.update({name: snapshot[name] for name in SHARED_SECTIONS if name in names})
        if self.may_see_content(snapshot):
            data["documentContent"] = snapshot["documentContent"]
        if job.params is not None:
            data["params"] = job.params
        return data

    def may_see_content(self, snapshot: Snapshot) -> bool:
        """The content of documents needs its name, and the user's leave (RT-SNAP-65)."""
        allowed = snapshot["privacyScope"].get("allowDocumentContent") is True
        return "documentContent" in snapshot and allowed and "documentContent" in snapshot["allowedModelFields"]
