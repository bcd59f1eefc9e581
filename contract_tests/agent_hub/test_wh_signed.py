"""Signatures of webhooks (decisions B7, Standard Webhooks)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.agent_hub.signatures import judge_signature, judge_unsigned
from contract_tests.agent_hub.webhooks import BATCH, CANCELLED, answering, comes, events, repeats, told_of_cancel
from contract_tests.checks import CheckSkipped, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven


def secret_of(given: HubGiven) -> str:
    """What the build signs with. Skips the check where that is not known."""
    if given.webhook_secret is None:
        raise CheckSkipped("needs to know what the build signs webhooks with (--webhook-secret)")
    return given.webhook_secret


@requirement("HUB-WH-59", "HUB-WH-63")
async def test_every_try_is_signed(given: HubGiven) -> None:
    """Each try, of a job's event and of a batch's, has a signature over its own id, timestamp and body."""
    secret, hook, batch = secret_of(given), given.hook(answering(CANCELLED, 500, 200)), given.unique("batch")
    own = await told_of_cancel(given, hook, batch=batch, metadata={"owner": "构建机 😀", "html": "<b>&amp;</b>"})
    await repeats(given, hook, own, 2, 5, ("HUB-WH-66",), step="a repeated try")
    for delivery in (*events(hook, *own), await comes(hook, BATCH, batch)):
        judge_signature(delivery, secret)


@requirement("HUB-WH-64")
async def test_without_a_secret_nothing_is_signed(given: HubGiven) -> None:
    """A build that has no secret sends no `webhook-signature`, not even one by an empty secret."""
    if given.webhook_secret is not None:
        raise CheckSkipped("needs a build that has no webhook secret")
    hook = given.hook()
    own = await told_of_cancel(given, hook)
    if not judge_unsigned(events(hook, *own)[0]):
        raise CheckSkipped("needs a build that has no webhook secret; this one signs")
