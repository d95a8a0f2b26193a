"""The state's bounds: whatever a session went through, what it carries stays small."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from gmi.personas.messages import Usage
from gmi.personas.metaprompts.answers import Imprint, MindPatch
from gmi.personas.metaprompts.variables import MindView
from gmi.personas.mind import Mind
from gmi.personas.prospective import Intention
from gmi.workflows.intentions import MAX_INTENTION_BYTES, MAX_INTENTIONS
from gmi.workflows.reflecting import MAX_PATCHES, MAX_PENDING
from gmi.workflows.remembering import MAX_WAITING_BYTES
from gmi.workflows.session_records import SessionConfig, SessionRules, Unremembered
from gmi.workflows.state import (
    MAX_ANSWERED,
    MAX_CARDS,
    MAX_OUTPUTS,
    MAX_REQUESTS,
    MAX_TRACE_TAIL,
    Answered,
    Pause,
    PendingMetaprompt,
    PendingPatch,
    RequestMemo,
    SessionState,
    TurnInput,
    TurnRecord,
)
from gmi.workflows.trace import TraceEntry
from gmi.workflows.turns import ToolCallView, TurnCard, TurnOutput

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MAX_STATE = 256 * 1024


def state() -> SessionState:
    return SessionState(
        session="s~1",
        created_at=NOW,
        config=SessionConfig(),
        rules=SessionRules(persona="p", persona_name="P"),
        persona_digest="d",
        toolset_digest="t",
    )


def card(seq: int, status: str = "done") -> TurnCard:
    return TurnCard.model_validate(
        {
            "turn": f"turn-{seq}",
            "seq": seq,
            "request_id": "r" * 200,
            "kind": "text",
            "status": status,
            "parent": f"turn-{seq - 1}",
            "branch": "main",
            "depth": seq,
            "created_at": NOW,
            "preview": "ü" * 100,
        }
    )


def output(seq: int, text: str = "", calls: int = 0) -> TurnOutput:
    return TurnOutput(
        session_key="s~1",
        turn=f"turn-{seq}",
        request_id="r",
        status="done",
        is_final=True,
        response_text=text,
        tool_calls=[ToolCallView(id=f"c{n}", name="echo") for n in range(calls)],
    )


def entry(seq: int, size: int = 0) -> TraceEntry:
    return TraceEntry(seq=seq, at=NOW, type="DEBUG", message="m" * size)


def record(seq: int, phase: str) -> TurnRecord:
    return TurnRecord.model_validate(
        {
            "turn": f"turn-{seq}",
            "seq": seq,
            "request_id": "r",
            "digest": "d",
            "input": TurnInput(content="x"),
            "created_at": NOW,
            "phase": phase,
            "pause": Pause(reasons={}, since=NOW) if phase == "paused" else None,
        }
    )


def test_the_newest_of_everything_stays() -> None:
    known = state()
    for seq in range(1, 501):
        known.put_card(card(seq))
        known.put_output(output(seq))
        known.requests.append(RequestMemo(turn=f"t{seq}", digest="d"))
        known.answered[f"c{seq}"] = Answered(digest="d", turn="t")
        known.trace.append(entry(seq))
        known.trace_flushed = seq
    known.trim()
    assert [c.seq for c in known.cards] == list(range(501 - MAX_CARDS, 501))
    assert [o.turn for o in known.outputs] == [f"turn-{n}" for n in range(501 - MAX_OUTPUTS, 501)]
    assert [m.turn for m in known.requests] == [f"t{n}" for n in range(501 - MAX_REQUESTS, 501)]
    assert list(known.answered) == [f"c{n}" for n in range(501 - MAX_ANSWERED, 501)]
    assert [e.seq for e in known.trace] == list(range(501 - MAX_TRACE_TAIL, 501))


def test_turns_that_have_not_ended_keep_their_cards_and_outputs() -> None:
    known = state()
    known.paused.append(record(1, "paused"))
    known.queue.append(record(2, "queued"))
    known.put_output(output(1).model_copy(update={"status": "waiting", "is_final": False}))
    for seq in range(1, 200):
        known.put_card(card(seq))
        known.put_output(output(seq + 1000, "x" * 8000))
    known.trim()
    assert known.card("turn-1") is not None
    assert known.card("turn-2") is not None
    waiting = known.output("turn-1")
    assert waiting is not None
    assert not waiting.is_final


def test_entries_that_the_store_does_not_have_are_never_dropped() -> None:
    known = state()
    known.trace = [entry(seq) for seq in range(1, 101)]
    known.trace_flushed = 20
    known.trim()
    assert [e.seq for e in known.trace] == list(range(21, 101))
    known.trace_flushed = 90
    known.trim()
    assert [e.seq for e in known.trace] == list(range(61, 101))


@pytest.mark.parametrize("seed", range(20))
def test_a_state_of_any_past_is_small(seed: int) -> None:
    chance = random.Random(seed)
    known = state()
    for seq in range(1, chance.randint(50, 400)):
        known.put_card(card(seq))
        known.put_output(output(seq, "ö" * chance.randint(0, 8000), chance.randint(0, 200)))
        known.requests.append(RequestMemo(turn="f" * 16, digest="d" * 16))
        known.answered[f"call_{'x' * 40}{seq}"] = Answered(digest="d" * 16, turn="t" * 36)
        known.trace.append(entry(seq, chance.randint(0, 1000)))
        known.trace_flushed = seq
        known.usage = known.usage + Usage(prompt_tokens=1)
        if chance.random() < 0.1:
            known.trim()
    known.trim()
    assert len(known.model_dump_json()) < MAX_STATE / 2
    again = SessionState.model_validate_json(known.model_dump_json())
    assert again == known


def test_trimming_twice_changes_nothing_more() -> None:
    known = state()
    for seq in range(1, 100):
        known.put_card(card(seq))
        known.put_output(output(seq, "x" * 9000))
    known.trim()
    once = known.model_dump_json()
    known.trim()
    assert known.model_dump_json() == once


def test_a_state_with_everything_that_waits_at_its_bound_is_small() -> None:
    known = state()
    long = {"k": "v" * 3000}
    view = MindView(user_context=long, task_context=long).fitted()
    for seq in range(MAX_PENDING):
        known.metaprompts.append(
            PendingMetaprompt(id="m" * 64, turn=f"t{seq}", persona_digest="d", view=view, since=NOW)
        )
    imprint = Imprint(key="k" * 64, value="v" * 1024, description="d" * 300)
    for seq in range(MAX_PATCHES):
        patch = MindPatch(imprints=(imprint,) * 8, rationale="r" * 1000, strategy="s" * 1000)
        known.patches.append(PendingPatch(turn=f"t{seq}", cause="m", patch=patch))
    while sum(len(item.model_dump_json()) for item in known.unencoded) < MAX_WAITING_BYTES:
        known.unencoded.append(Unremembered(turn="t" * 36, persona_digest="d" * 64))
    for seq in range(MAX_INTENTIONS):
        intention = Intention(
            id=f"i{seq}",
            content="ü" * (MAX_INTENTION_BYTES // 2),
            kind="event",
            event="e",
            created_at=NOW,
        )
        known.intentions.append(intention)
        known.intention_digests[f"i{seq}"] = "d" * 16
    known.mind = Mind().noted({f"k{n}": "v" * 1000 for n in range(100)})
    known.trim()
    assert len(known.model_dump_json()) < MAX_STATE
