from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
import pytest

from gmi.activities.asking import Asked, Asker, Bill, NoAnswerError
from gmi.activities.gateway.circuits import CircuitRegistry
from gmi.activities.gateway.failures import ProviderFailure
from gmi.activities.gateway.provider import ModelRequest, ProviderEvent, UsageReport
from gmi.activities.gateway.registry import ProviderRegistry
from gmi.personas.errors import ConfigurationError, CredentialRefusedError
from gmi.personas.messages import Usage
from gmi.personas.schema import Persona
from gmi.workflows.turns import HopSpec

from ..support.scripted_model import Fail, Hang, ScriptedModel, Text, Used

PERSONA = Persona.model_validate(
    {"id": "a", "name": "A", "description": "a", "version": "1.0.0", "baseSystemPrompt": "You are."}
)


class Billing:
    """A provider that says what it bills before it answers, and then does what the test wants.

    Attributes:
        billed: It has said so.
    """

    kind = "openai"

    def __init__(self, error: Exception | None = None) -> None:
        self.billed = asyncio.Event()
        self._error = error

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        yield UsageReport(Usage(prompt_tokens=7))
        # Whoever reads has taken it when the next event is asked for.
        self.billed.set()
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()

    def request_body(self, request: ModelRequest) -> dict[str, object]:
        return {}


class Desk:
    """An asker, the clock of its circuits, and its circuits."""

    def __init__(self, client: httpx.AsyncClient, model: ScriptedModel) -> None:
        settings = {
            "OPENAI_API_KEY": "test-key-not-secret",
            "OPENAI_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "test-key-not-secret",
            "ANTHROPIC_BASE_URL": model.base_url("anthropic"),
        }
        self.now = 0.0
        self.circuits = CircuitRegistry(lambda: self.now)
        self.providers = ProviderRegistry(client, settings)
        self.asker = Asker(self.providers, self.circuits, settings)

    async def ask(self, *fallback: str, **changes: Any) -> Asked:
        given: dict[str, Any] = {
            "model": "openai:scripted",
            "fallback": [HopSpec(model=model) for model in fallback],
        }
        return await self.asker.ask(PERSONA, "a question", **(given | changes))


@pytest.fixture
async def desk(model: ScriptedModel) -> AsyncIterator[Desk]:
    async with httpx.AsyncClient() as client:
        yield Desk(client, model)


async def test_every_hop_that_was_asked_has_its_bill(desk: Desk, model: ScriptedModel) -> None:
    model.on("a question", Fail(503), provider="openai")
    model.on("a question", Text("yes"), provider="anthropic")
    asked = await desk.ask("gemini:unset", "anthropic:other")
    assert (asked.text, asked.provider, asked.model) == ("yes", "anthropic", "other")
    assert [(bill.hop, bill.provider, bill.failed) for bill in asked.bills] == [
        (0, "openai", True),
        (2, "anthropic", False),
    ]
    assert asked.usage.prompt_tokens == sum(bill.usage.prompt_tokens for bill in asked.bills) == 10


async def test_the_time_is_for_all_hops_together(desk: Desk, model: ScriptedModel) -> None:
    model.on("a question", Text("y"), Used(7, 1), Hang(), provider="openai")
    model.on("a question", Text("yes"), provider="anthropic")
    async with asyncio.timeout(10):
        with pytest.raises(NoAnswerError) as none:
            await desk.ask("anthropic:other", deadline=0.3)
    assert none.value.late
    assert [(bill.hop, bill.usage.prompt_tokens) for bill in none.value.bills] == [(0, 7)]
    assert len(model.requests) == 1
    # A short deadline of ours says nothing of the provider's health.
    assert desk.circuits.stats("openai").failures == 0


@pytest.mark.parametrize(
    ("failures", "passing", "wait"),
    [
        ([Fail(503), Fail(503)], True, None),
        ([Fail(429, headers={"retry-after": "7"}), Fail(401)], True, 7.0),
        ([Fail(429, headers={"retry-after": "7"}), Fail(503)], True, None),
        ([Fail(401), Fail(400)], False, None),
    ],
)
async def test_a_failure_says_whether_it_passes_and_when(
    desk: Desk, model: ScriptedModel, failures: list[Fail], passing: bool, wait: float | None
) -> None:
    for failure, provider in zip(failures, ("openai", "anthropic"), strict=True):
        model.on("a question", failure, provider=provider)
    with pytest.raises(NoAnswerError) as none:
        await desk.ask("anthropic:other")
    assert (none.value.passing, none.value.retry_after) == (passing, wait)
    assert len(none.value.details["hops"]) == 2
    assert not none.value.late


async def test_a_circuit_that_is_open_is_not_asked_and_passes(
    desk: Desk, model: ScriptedModel
) -> None:
    desk.circuits.record_failure("openai", ProviderFailure("no credit", kind="http", status=402))
    with pytest.raises(NoAnswerError) as none:
        await desk.ask()
    assert none.value.passing
    assert (none.value.bills, model.requests) == ((), [])


async def test_a_call_that_is_given_up_leaves_the_circuit_to_the_next(
    desk: Desk, model: ScriptedModel
) -> None:
    desk.circuits.record_failure("openai", ProviderFailure("no credit", kind="http", status=402))
    desk.now = 301.0
    model.on("a question", Hang(), times=1)
    model.on("a question", Text("yes"))
    # The one call that finds out whether the provider is back.
    probe = asyncio.create_task(desk.ask())
    while not model.requests:
        await asyncio.sleep(0.01)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert (await desk.ask()).text == "yes"


async def test_a_question_that_is_cancelled_tells_what_each_hop_has_billed(
    desk: Desk, model: ScriptedModel
) -> None:
    provider = Billing()
    desk.providers.register("billing", provider)
    model.on("a question", Fail(503))
    bills: list[Bill] = []
    asking = asyncio.create_task(desk.ask("billing:one", bills=bills))
    await provider.billed.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert [(bill.hop, bill.provider, bill.failed) for bill in bills] == [
        (0, "openai", True),
        (1, "billing", True),
    ]
    assert bills[1].usage.prompt_tokens == 7


@pytest.mark.parametrize("error", [RuntimeError("a mistake"), TimeoutError("its own, not ours")])
async def test_a_question_that_fails_by_a_mistake_tells_what_was_billed(
    desk: Desk, error: Exception
) -> None:
    desk.providers.register("billing", Billing(error))
    bills: list[Bill] = []
    with pytest.raises(type(error)):
        await desk.ask(model="billing:one", bills=bills)
    assert [(bill.failed, bill.usage.prompt_tokens) for bill in bills] == [(True, 7)]


async def test_bills_are_added_to_those_that_the_list_has(desk: Desk, model: ScriptedModel) -> None:
    model.on("a question", Text("yes"), Used(7, 1), times=1)
    model.on("a question", Fail(400))
    bills: list[Bill] = []
    asked = await desk.ask(bills=bills)
    with pytest.raises(NoAnswerError) as none:
        await desk.ask(bills=bills)
    assert bills == [*asked.bills, *none.value.bills]
    assert (len(bills), asked.usage.prompt_tokens) == (2, 7)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"model": "nowhere:model"}, ConfigurationError),
        ({"credentials": {"openai": "env:MISSING"}}, CredentialRefusedError),
    ],
)
async def test_a_first_hop_that_is_set_up_wrongly_is_said(
    desk: Desk, changes: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await desk.ask("anthropic:other", **changes)


async def test_a_later_hop_that_is_set_up_wrongly_is_passed_over(
    desk: Desk, model: ScriptedModel
) -> None:
    model.on("a question", Fail(503), provider="openai")
    with pytest.raises(NoAnswerError) as none:
        await desk.ask("anthropic:other", credentials={"anthropic": "env:MISSING"})
    assert [hop["kind"] for hop in none.value.details["hops"]] == ["http", "configuration"]
    assert [bill.provider for bill in none.value.bills] == ["openai"]
