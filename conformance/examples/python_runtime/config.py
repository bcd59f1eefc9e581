"""What the environment says: addresses, names, intervals. All spans are seconds in here, milliseconds outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

JOB_TYPES = (
    "learning_state_analysis",
    "weak_point_analysis",
    "next_action_planning",
    "quiz_generation",
    "flashcard_generation",
)
SNAPSHOT_VERSIONS = ("ai_snapshot_v1",)
OUTPUT_VERSIONS = ("analysis_output_v1", "quiz_output_v1", "flashcard_output_v1")
VERSION = "0.1.0"


class BadEnvironment(ValueError):  # noqa: N818
    """A variable is missing or can't be read; the text says which and how to mend it."""


@dataclass(frozen=True)
class Config:
    """How this process works. ``heartbeat_interval`` is a quarter of the time that a lock lasts."""

    base_url: str
    token: str
    instance_id: str
    health_port: int | None
    poll_interval: float
    heartbeat_interval: float
    model_timeout: float
    platform_key: str | None
    slots: int = 4
    poll_limit: int = 10
    model_tries: int = 1
    stream: bool = False
    keep_alive: bool = True
    heartbeats_a_lock: int = 4
    drain_seconds: float = 10.0
    report_seconds: float = 8.0
    flush_seconds: float = 4.0

    @property
    def lock_seconds(self) -> float:
        """How long a lock lasts from the request that was answered last; never read from ``lockUntil`` (RT-HB-60)."""
        return 4 * self.heartbeat_interval

    @property
    def heartbeat_pause(self) -> float:
        """Time between two heartbeats."""
        return self.lock_seconds / self.heartbeats_a_lock


def read(environment: Mapping[str, str]) -> Config:
    """Read the variables. Raises :class:`BadEnvironment`."""
    port = environment.get("RUNTIME_HEALTH_PORT", "")
    if port and not port.isdecimal():
        raise BadEnvironment(f"RUNTIME_HEALTH_PORT={port!r} is no port; give a number, or leave it out")
    return Config(
        base_url=_needed(environment, "API_BASE_URL").rstrip("/"),
        token=_needed(environment, "RUNTIME_SERVICE_TOKEN"),
        instance_id=_needed(environment, "RUNTIME_INSTANCE_ID"),
        health_port=int(port) if port else None,
        poll_interval=_seconds(environment, "POLL_INTERVAL_MS", 1000),
        heartbeat_interval=_seconds(environment, "HEARTBEAT_INTERVAL_MS", 15000),
        model_timeout=_seconds(environment, "MODEL_TIMEOUT_MS", 40000),
        platform_key=environment.get("PLATFORM_MODEL_API_KEY") or None,
    )


def _needed(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise BadEnvironment(f"{name} is not set; the Runtime can't work without it")
    return value


def _seconds(environment: Mapping[str, str], name: str, default: int) -> float:
    value = environment.get(name) or str(default)
    try:
        milliseconds = float(value)
    except ValueError:
        milliseconds = 0
    if not 0 < milliseconds < float("inf"):
        raise BadEnvironment(f"{name}={value!r} is no number of milliseconds above 0")
    return milliseconds / 1000
