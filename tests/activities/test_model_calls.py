from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError

from gmi.activities import beside
from gmi.activities.call_questions import MetapromptQuestion
from gmi.activities.gateway.provider import ProviderEvent, UsageReport
from gmi.activities.reply import Reply
from gmi.personas.metaprompts import MindPatch
from gmi.workflows.failures import WORKER_SHUTDOWN

from ..support.scripted_model import Cut, Fail, Hang, ScriptedModel, Text, Used
from .model_call_bench import Bench
from .model_call_bench import bench as running_bench

CURIOUS = '{"updatedGmiMood":"curious","adjustmentRationale":"it asks a lot"}'
PATCH = MindPatch(mood="curious", rationale="it asks a lot")


@pytest.fixture
async def bench(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Bench]:
    async with running_bench(tmp_path, model) as made:
        yield made


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[int]:
    """Takes the prompt tokens of each usage report as it arrives."""
    seen: asyncio.Queue[int] = asyncio.Queue()
    take = Reply.take

    def taking(self: Reply, event: ProviderEvent) -> Any:
        items = take(self, event)
        if isinstance(event, UsageReport):
            seen.put_nowait(event.usage.prompt_tokens)
        return items

    monkeypatch.setattr(Reply, "take", taking)
    return seen


async def arrived(reported: asyncio.Queue[int], tokens: int) -> None:
    """Wait until a report of so many tokens has arrived."""
    async with asyncio.timeout(10):
        while await reported.get() != tokens:
            pass


def billed(bills: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Purpose, answer, attempt, hop, state and tokens of each bill but the turn's own."""
    return [
        (b["purpose"], b["step"], b["attempt"], b["hop"], b["state"], b["usage"]["prompt_tokens"])
        for b in bills
        if b["purpose"] != "step"
    ]


async def test_an_answer_becomes_a_patch_and_a_bill(bench: Bench, model: ScriptedModel) -> None:
    model.on("LOOK", Text(CURIOUS), Used(7, 3))
    result = await bench.serve(bench.request())
    assert result.patch == PATCH
    assert (result.refused, result.code, result.repaired, result.attempts) == (None, None, False, 1)
    assert (result.provider, result.model) == ("openai", "scripted")
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (7, 3)
    assert billed(await bench.bills()) == [("metaprompt:own", 0, 1, 0, "done", 7)]


async def test_the_model_is_told_the_mind_the_conversation_and_the_form(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text(CURIOUS))
    await bench.serve(bench.request(user_id="kim"))
    [asked] = model.requests
    system, question = asked["messages"]
    assert "Ada" in system["content"]
    assert '"updatedTaskComplexity"' in system["content"]
    told = [
        {"role": "user", "content": "the question"},
        {"role": "assistant", "content": "the answer"},
    ]
    assert question["content"] == (
        f"LOOK focused {json.dumps(told, separators=(',', ':'))} {{{{nobody}}}}"
    )
    assert asked["response_format"] == {"type": "json_object"}
    assert asked["temperature"] == 0.3
    assert 512 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))


async def test_a_metaprompt_may_have_a_model_a_temperature_and_a_limit_of_its_own(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text(CURIOUS))
    result = await bench.serve(bench.request("elsewhere"))
    [asked] = model.requests
    assert result.model == asked["model"] == "other"
    assert asked["temperature"] == 1.0
    assert 64 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))


async def test_a_preset_is_served_by_its_id(bench: Bench, model: ScriptedModel) -> None:
    said = {"updatedGmiMood": "empathetic", "adjustmentRationale": "r", "recoveryStrategy": "s"}
    model.on("has become frustrated", Text(json.dumps(said)))
    result = await bench.serve(bench.request("gmi_frustration_recovery"))
    assert result.patch == MindPatch(mood="empathetic", rationale="r", strategy="s")


@pytest.mark.parametrize(
    "text", [f"```json\n{CURIOUS}\n```", f"I think so:\n{CURIOUS}\nThat is all."]
)
async def test_an_answer_may_stand_in_a_fence_or_between_words(
    bench: Bench, model: ScriptedModel, text: str
) -> None:
    model.on("LOOK", Text(text))
    assert (await bench.serve(bench.request())).patch == PATCH


@pytest.mark.parametrize(
    ("text", "reason"),
    [("hello", "no JSON object"), ('{"updatedGmiMood":"grumpy"}', "grumpy"), ("", "empty")],
)
async def test_nonsense_is_asked_for_once_more_and_a_better_answer_counts(
    bench: Bench, model: ScriptedModel, text: str, reason: str
) -> None:
    model.on("LOOK", Text(text), Used(7, 3), times=1)
    model.on("LOOK", Text(CURIOUS), Used(20, 4))
    result = await bench.serve(bench.request())
    assert result.patch == PATCH
    assert (result.repaired, result.attempts) == (True, 1)
    again = model.requests[1]["messages"][-1]["content"]
    assert again.startswith(model.requests[0]["messages"][-1]["content"])
    assert reason in again
    assert result.usage.prompt_tokens == 27
    assert billed(await bench.bills()) == [
        ("metaprompt:own", 0, 1, 0, "done", 7),
        ("metaprompt:own", 1, 1, 0, "done", 20),
    ]


async def test_nonsense_twice_is_refused_with_the_reasons_and_is_billed(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text('{"updatedGmiMood":"focused","updatedUserSkillLevel":"wizard"}'))
    result = await bench.serve(bench.request())
    assert result.patch is None
    assert result.code == "METAPROMPT_ANSWER_INVALID"
    assert result.reasons == [
        'updatedUserSkillLevel is "wizard" and none of novice, beginner, intermediate, advanced, '
        "expert."
    ]
    assert len(model.requests) == 2
    assert result.usage.prompt_tokens == 20
    assert len(billed(await bench.bills())) == 2


async def test_a_hang_is_cut_at_the_deadline_and_what_it_billed_is_known(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text(CURIOUS), Used(7, 3), Hang())
    async with asyncio.timeout(10):
        result = await bench.serve(bench.request(deadline=0.5))
    # The whole answer had been sent, but the model had not said that it was the end.
    assert result.patch is None
    assert result.code == "METAPROMPT_DEADLINE"
    assert "0.5 s" in (result.refused or "")
    assert result.usage.prompt_tokens == 7
    assert billed(await bench.bills()) == [("metaprompt:own", 0, 1, 0, "failed", 7)]


async def test_a_repair_has_only_the_time_that_is_left(bench: Bench, model: ScriptedModel) -> None:
    model.on("LOOK", Text("hello"), times=1)
    model.on("LOOK", Hang())
    async with asyncio.timeout(10):
        result = await bench.serve(bench.request(deadline=0.5))
    assert result.code == "METAPROMPT_DEADLINE"
    assert [bill[4] for bill in billed(await bench.bills())] == ["done", "failed"]


async def test_a_later_attempt_has_what_earlier_ones_left(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text(CURIOUS))
    result = await bench.attempt(bench.request(deadline=120), number=3, gone=121)
    assert result.code == "METAPROMPT_DEADLINE"
    assert model.requests == []
    assert (await bench.attempt(bench.request(deadline=120), number=3, gone=100)).patch == PATCH


@pytest.mark.parametrize("failure", [Fail(503), Fail(429), Cut()])
async def test_a_provider_that_fails_is_asked_again_by_the_next_attempt(
    bench: Bench, model: ScriptedModel, failure: Fail | Cut
) -> None:
    model.on("LOOK", failure, times=2)
    model.on("LOOK", Text(CURIOUS), Used(7, 3))
    result = await bench.serve(bench.request())
    assert result.patch == PATCH
    assert result.attempts == 3
    waits = [failed.next_retry_delay for failed in bench.failures]
    assert [wait.total_seconds() for wait in waits if wait is not None] == [0.5, 1.0]
    assert {failed.type for failed in bench.failures} == {"LLM_PROVIDER_ERROR"}
    assert [bill[2:5] for bill in billed(await bench.bills())] == [
        (1, 0, "failed"),
        (2, 0, "failed"),
        (3, 0, "done"),
    ]


async def test_a_provider_says_how_long_to_wait(bench: Bench, model: ScriptedModel) -> None:
    model.on("LOOK", Fail(429, headers={"retry-after": "7"}), times=1)
    model.on("LOOK", Text(CURIOUS))
    assert (await bench.serve(bench.request())).patch == PATCH
    [failed] = bench.failures
    assert failed.next_retry_delay is not None
    assert failed.next_retry_delay.total_seconds() == 7


async def test_a_wait_beyond_the_deadline_ends_the_call_at_once(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Fail(429, headers={"retry-after": "600"}))
    result = await bench.serve(bench.request())
    assert (result.code, result.attempts) == ("LLM_PROVIDER_ERROR", 1)
    assert "openai" in (result.refused or "")


@pytest.mark.parametrize("failure", [Fail(401), Fail(400)])
async def test_what_does_not_heal_ends_the_call_at_once(
    bench: Bench, model: ScriptedModel, failure: Fail
) -> None:
    model.on("LOOK", failure)
    result = await bench.serve(bench.request())
    assert (result.patch, result.code, result.attempts) == (None, "LLM_PROVIDER_ERROR", 1)


async def test_another_model_answers_when_the_first_one_cannot(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Fail(503), provider="openai")
    model.on("LOOK", Text(CURIOUS), provider="anthropic")
    request = bench.request(fallback=[{"model": "gemini:none"}, {"model": "anthropic:other"}])
    result = await bench.serve(request)
    assert result.patch == PATCH
    assert (result.provider, result.attempts) == ("anthropic", 1)
    # The hop in the middle has no key, so nothing was asked of it.
    assert [bill[3:5] for bill in billed(await bench.bills())] == [(0, "failed"), (2, "done")]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"prompt_id": "nobody"}, "METAPROMPT_UNKNOWN"),
        ({"model": "nowhere:model"}, "SYS_CONFIGURATION_ERROR"),
        ({"credentials": {"openai": "env:MISSING"}}, "CREDENTIAL_REFUSED"),
        ({"persona_digest": "0" * 64}, "SYS_RESOURCE_NOT_FOUND"),
    ],
)
async def test_what_cannot_be_asked_is_refused_and_costs_nothing(
    bench: Bench, model: ScriptedModel, changes: dict[str, Any], code: str
) -> None:
    result = await bench.serve(bench.request(**changes))
    assert (result.patch, result.code) == (None, code)
    assert model.requests == []
    assert billed(await bench.bills()) == []


async def test_an_answer_that_an_attempt_has_is_not_asked_for_again(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text(CURIOUS), Used(7, 3))
    bench.store.down = 1
    result = await bench.serve(bench.request())
    assert (result.patch, result.attempts) == (PATCH, 2)
    assert len(model.requests) == 1
    assert result.usage.prompt_tokens == 7
    assert billed(await bench.bills()) == [("metaprompt:own", 0, 1, 0, "done", 7)]


async def test_a_repair_that_fails_is_repeated_without_the_first_question(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text("hello"), Used(7, 3), times=1)
    model.on("LOOK", Fail(503), times=1)
    model.on("LOOK", Text(CURIOUS), Used(20, 4))
    result = await bench.serve(bench.request())
    assert (result.patch, result.repaired, result.attempts) == (PATCH, True, 2)
    assert result.usage.prompt_tokens == 27
    assert [bill[1:5] for bill in billed(await bench.bills())] == [
        (0, 1, 0, "done"),
        (1, 1, 0, "failed"),
        (1, 2, 0, "done"),
    ]


async def test_a_call_that_a_mistake_of_ours_ends_has_its_bills_in_the_ledger(
    bench: Bench, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: Any) -> Any:
        raise KeyError("a mistake")

    model.on("LOOK", Text(CURIOUS), Used(7, 3))
    monkeypatch.setattr(MetapromptQuestion, "read", mistaken)
    for number in (1, 2):
        with pytest.raises(KeyError):
            await bench.attempt(bench.request(), number)
    result = await bench.attempt(bench.request(), 3)
    assert (result.code, result.usage.prompt_tokens) == ("GMI_PROCESSING_ERROR", 7)
    assert billed(await bench.bills()) == [("metaprompt:own", 0, 1, 0, "done", 7)]


async def test_an_error_that_nobody_foresaw_ends_the_call_after_three_attempts(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text(CURIOUS), Used(7, 3))
    bench.store.down = 99
    result = await bench.serve(bench.request())
    assert (result.patch, result.code, result.attempts) == (None, "GMI_PROCESSING_ERROR", 3)
    assert len(model.requests) == 1
    assert result.usage.prompt_tokens == 7


async def test_a_worker_that_shuts_down_hands_the_call_and_its_bills_on(
    bench: Bench, model: ScriptedModel, reported: asyncio.Queue[int]
) -> None:
    model.on("LOOK", Text("hello"), Used(7, 3), times=1)
    model.on("LOOK", Text("{"), Used(20, 4), Hang(), times=1)
    model.on("LOOK", Text(CURIOUS), Used(30, 5))
    request = bench.request(number=4)
    running = asyncio.create_task(bench.attempt(request))
    await arrived(reported, 20)
    bench.env.cancel(ActivityCancellationDetails(worker_shutdown=True))
    with pytest.raises(ApplicationError) as handed:
        await running
    assert (handed.value.type, handed.value.non_retryable) == (WORKER_SHUTDOWN, False)
    # There may be no other attempt: the session has given the call up, or waits for a worker.
    known = [
        ("metaprompt:own", 8, 1, 0, "done", 7),
        ("metaprompt:own", 9, 1, 0, "failed", 20),
    ]
    assert billed(await bench.bills()) == known
    result = await bench.attempt(request, number=2)
    assert (result.patch, result.usage.prompt_tokens) == (PATCH, 57)
    assert billed(await bench.bills()) == [*known, ("metaprompt:own", 9, 2, 0, "done", 30)]


async def test_a_call_that_is_cancelled_applies_nothing_and_its_bills_stand(
    bench: Bench, model: ScriptedModel, reported: asyncio.Queue[int]
) -> None:
    model.on("LOOK", Text("hello"), Used(7, 3), times=1)
    model.on("LOOK", Text(CURIOUS), Used(20, 4), Hang())
    running = asyncio.create_task(bench.attempt(bench.request()))
    await arrived(reported, 20)
    bench.env.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert billed(await bench.bills()) == [
        ("metaprompt:own", 0, 1, 0, "done", 7),
        ("metaprompt:own", 1, 1, 0, "failed", 20),
    ]


async def test_a_cancelled_call_waits_for_no_ledger_that_hangs(
    bench: Bench, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(beside, "CUT_SECONDS", 0.05)
    monkeypatch.setattr(bench.store, "record_usage", hang)
    model.on("LOOK", Hang())
    running = asyncio.create_task(bench.attempt(bench.request()))
    while not model.requests:
        await asyncio.sleep(0.01)
    bench.env.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_cancelled_call_stays_cancelled_when_the_ledger_fails(
    bench: Bench, model: ScriptedModel
) -> None:
    bench.store.down = 1
    model.on("LOOK", Hang())
    running = asyncio.create_task(bench.attempt(bench.request()))
    while not model.requests:
        await asyncio.sleep(0.01)
    bench.env.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert bench.store.down == 0


async def test_an_answer_of_no_use_is_in_the_ledger_before_more_is_asked(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text("hello"), Used(7, 3), times=1)
    model.on("LOOK", Hang())
    running = asyncio.create_task(bench.attempt(bench.request()))
    while len(model.requests) < 2:
        await asyncio.sleep(0.01)
    assert billed(await bench.bills()) == [("metaprompt:own", 0, 1, 0, "done", 7)]
    bench.env.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_every_call_of_a_metaprompt_has_rows_of_its_own(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text("hello"), Used(7, 3), times=1)
    model.on("LOOK", Text(CURIOUS), Used(20, 4))
    for number in (3, 4, 9):
        bench.details = []
        request = bench.request(purpose="reflect", number=number)
        assert (await bench.attempt(request)).patch == PATCH
        # The worker was lost before its completion arrived: the same rows are written again.
        assert (await bench.attempt(request, number=2)).patch == PATCH
    assert billed(await bench.bills()) == [
        ("reflect:own", 6, 1, 0, "done", 7),
        ("reflect:own", 7, 1, 0, "done", 20),
        ("reflect:own", 8, 1, 0, "done", 20),
        ("reflect:own", 18, 1, 0, "done", 20),
    ]


async def test_two_metaprompts_of_one_turn_have_bills_of_their_own(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("LOOK", Text(CURIOUS), Used(7, 3))
    await bench.serve(bench.request())
    bench.details = []
    await bench.serve(bench.request("elsewhere"))
    bench.details = []
    await bench.serve(bench.request(purpose="reflect"))
    assert sorted(bill[0] for bill in billed(await bench.bills())) == [
        "metaprompt:elsewhere",
        "metaprompt:own",
        "reflect:own",
    ]
