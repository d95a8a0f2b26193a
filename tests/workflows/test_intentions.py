"""What a session's state holds of its intentions, and what brings them up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gmi.personas.errors import (
    GMIError,
    MessageTooLargeError,
    RequestMismatchError,
    SessionBusyError,
    ValidationError,
)
from gmi.workflows import intentions
from gmi.workflows.decode import parse
from gmi.workflows.intending import said
from gmi.workflows.intention_calls import Intend, IntentionAck
from gmi.workflows.session_records import SessionConfig, SessionRules
from gmi.workflows.state import SessionState, TurnInput, TurnRecord
from gmi.workflows.turns import TurnStatus
from gmi.workflows.writes import KeptIntentions

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
WEEK = 7 * 86_400.0


@pytest.fixture
def state() -> SessionState:
    return SessionState(
        session="s~1",
        created_at=NOW,
        config=SessionConfig(),
        rules=SessionRules(persona="p", persona_name="P"),
        persona_digest="d",
        toolset_digest="t",
    )


def asked(content: str = "water the fern", **given: Any) -> Intend:
    if not given.keys() & {"at", "event", "cue"}:
        given["event"] = "home"
    return parse({"content": content, **given}, Intend)


def add(state: SessionState, content: str = "water the fern", **given: Any) -> IntentionAck:
    made = f"made up {len(state.intentions)}"
    return intentions.add(state, asked(content, **given), made, NOW)


def record(turn: str, *reminded: str) -> TurnRecord:
    return TurnRecord(
        turn=turn,
        seq=1,
        request_id=turn,
        digest="",
        input=TurnInput(content="x"),
        created_at=NOW,
        reminded=list(reminded),
    )


def end(
    state: SessionState, turn: str, *reminded: str, status: TurnStatus = "done", now: datetime = NOW
) -> None:
    intentions.turn_ended(state, record(turn, *reminded), status, now)


def told(state: SessionState, now: datetime = NOW, ceiling: int | None = None) -> list[str]:
    return [item.id for item in intentions.reminders(state, now, ceiling)]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({}, "nothing"),
        ({"at": NOW, "event": "e"}, "at and event"),
        ({"event": ""}, "empty"),
        ({"cue": "  "}, "empty"),
        ({"event": "e", "content": " "}, "empty"),
        ({"at": "2030-01-01T00:00:00"}, "timezone"),
        ({"at": 5}, "a number is no time"),
        ({"at": "5"}, "a number is no time"),
        ({"at": "1893456000.5"}, "a number is no time"),
        ({"at": True}, "a number is no time"),
        ({"at": "2030-01-01"}, "timezone|timezone info"),
        ({"at": "9500-01-01T00:00:00Z"}, "earlier"),
        ({"event": "e", "every": 60, "recurring": True}, "every"),
        ({"at": NOW, "every": 60}, "every"),
        ({"at": NOW, "every": 0.5, "recurring": True}, "greater"),
        ({"at": NOW, "recurring": True, "then": "turn"}, "60 seconds"),
        ({"at": NOW, "recurring": True, "every": 59, "then": "turn"}, "60 seconds"),
        ({"cue": "c", "then": "turn"}, "starts none"),
        ({"event": "e", "importance": 1.1}, "less than"),
        ({"event": "e", "content": "x" * 501}, "at most 500"),
        ({"event": "e", "colour": "red"}, "colour"),
    ],
)
def test_an_intention_that_does_not_fit_together_is_refused(
    given: dict[str, Any], word: str
) -> None:
    with pytest.raises(ValidationError, match=word):
        parse({"content": "x", **given}, Intend)


def test_a_repeat_adds_nothing(state: SessionState) -> None:
    first = add(state, request_id="r")
    again = add(state, request_id="r")
    assert first.added
    assert not again.added
    assert again.id == first.id
    assert again.intention == first.intention
    assert len(state.intentions) == 1


def test_a_repeat_after_it_came_adds_nothing_either(state: SessionState) -> None:
    name = add(state, request_id="r").id
    intentions.notice(state, "home")
    end(state, "t", name)
    assert state.intentions == []
    again = add(state, request_id="r")
    assert (again.added, again.intention) == (False, None)
    assert add(state, request_id="another").added


def test_an_id_is_one_intention_until_it_is_over_or_cancelled(state: SessionState) -> None:
    assert add(state, id="fern").added
    with pytest.raises(RequestMismatchError, match="fern"):
        add(state, "water the cactus", id="fern")
    assert intentions.cancel(state, "fern")
    assert not intentions.cancel(state, "fern")
    assert add(state, id="fern").added
    intentions.notice(state, "home")
    end(state, "t", "fern")
    assert add(state, "water the cactus", id="fern").added


def test_only_so_many_of_so_much_wait(state: SessionState) -> None:
    for number in range(intentions.MAX_INTENTIONS):
        add(state, "ä" * 400, id=f"i{number}")
    with pytest.raises(SessionBusyError, match="32"):
        add(state)
    with pytest.raises(MessageTooLargeError, match="1024"):
        add(state, "ä" * 500, id="x" * 100)
    intentions.cancel(state, "i0")
    assert add(state).added
    assert len(state.model_dump_json()) < 64 * 1024


def test_what_is_known_of_those_that_are_over_is_bounded(state: SessionState) -> None:
    for number in range(300):
        add(state, id=f"i{number}")
        intentions.notice(state, "home")
        end(state, "t", f"i{number}")
    assert state.intentions == []
    assert len(state.intention_digests) <= intentions.MAX_CAME + 1
    assert not add(state, id="i299").added


def test_a_reminder_is_told_until_a_turn_that_told_it_is_done(state: SessionState) -> None:
    add(state, id="fern", at=NOW)
    assert told(state, NOW - DAY) == []
    for status in ("failed", "stopped", "abandoned"):
        assert told(state) == ["fern"]
        end(state, "t", "fern", status=status)
    end(state, "t")
    assert told(state) == ["fern"]
    end(state, "t", "fern")
    assert told(state) == []
    assert state.intentions == []


def test_an_event_is_due_from_its_notice_on(state: SessionState) -> None:
    add(state, id="fern", importance=0.1)
    add(state, "ask how it went", id="ask", event="home", recurring=True)
    add(state, id="other", event="away")
    assert told(state) == []
    assert [item.id for item in intentions.notice(state, "home")] == ["ask", "fern"]
    assert told(state) == ["ask", "fern"]
    end(state, "t", "ask", "fern")
    assert told(state) == []
    assert [item.id for item in intentions.notice(state, "home")] == ["ask"]
    assert told(state) == ["ask"]


def test_cues_go_along_with_what_is_due(state: SessionState) -> None:
    add(state, id="vet", cue="the cat")
    add(state, id="fern", at=NOW)
    found = intentions.reminders(state, NOW, None)
    assert [(item.id, item.cue) for item in found] == [("fern", None), ("vet", "the cat")]
    end(state, "t", "vet")
    assert told(state) == ["fern"]


def test_a_turn_with_a_ceiling_is_not_told_what_is_above_it(state: SessionState) -> None:
    add(state, id="secret", at=NOW, tier=2)
    add(state, id="secret cue", cue="cat", tier=2)
    add(state, id="open", at=NOW)
    assert told(state, ceiling=1) == ["open"]
    assert told(state) == ["secret", "open", "secret cue"]


def test_the_session_starts_a_turn_when_a_time_has_come(state: SessionState) -> None:
    add(state, id="late", at=NOW + 2 * DAY, then="turn")
    add(state, id="soon", at=NOW + DAY, then="turn")
    add(state, id="reminder", at=NOW, then="remind")
    assert intentions.next_start(state) == NOW + DAY
    assert intentions.to_start(state, NOW) == []
    (item,) = intentions.to_start(state, NOW + DAY)
    assert item.id == "soon"
    assert said(item).endswith("2030-01-02T00:00:00+00:00, has come: water the fern")
    intentions.started(state, item, "turn-1", NOW + DAY)
    assert intentions.next_start(state) == NOW + 2 * DAY
    assert told(state, NOW + 3 * DAY) == ["reminder"]
    end(state, "turn-1")
    assert [item.id for item in state.intentions] == ["late", "reminder"]


def test_a_turn_that_came_to_nothing_leaves_a_reminder(state: SessionState) -> None:
    add(state, id="fern", at=NOW, then="turn")
    (item,) = intentions.to_start(state, NOW)
    intentions.started(state, item, "turn-1", NOW)
    end(state, "turn-1", status="failed")
    assert intentions.next_start(state) is None
    assert intentions.to_start(state, NOW + DAY) == []
    assert told(state) == ["fern"]
    end(state, "turn-2", "fern")
    assert state.intentions == []


def test_a_recurring_one_starts_one_turn_at_a_time(state: SessionState) -> None:
    add(state, id="weekly", at=NOW, recurring=True, every=WEEK, then="turn")
    (item,) = intentions.to_start(state, NOW)
    intentions.started(state, item, "turn-1", NOW)
    assert intentions.to_start(state, NOW + 30 * DAY) == []
    assert intentions.next_start(state) is None
    end(state, "turn-1", now=NOW + 30 * DAY)
    assert intentions.next_start(state) == NOW + 7 * DAY
    (item,) = intentions.to_start(state, NOW + 30 * DAY)
    intentions.started(state, item, "turn-2", NOW + 30 * DAY)
    end(state, "turn-2", status="failed")
    known = intentions.find(state, "weekly")
    assert known is not None
    assert (known.at, known.fired, known.due) == (NOW + 35 * DAY, 2, True)
    end(state, "turn-3", "weekly")
    known = intentions.find(state, "weekly")
    assert known is not None
    assert (known.at, known.fired, known.due) == (NOW + 35 * DAY, 2, False)


def test_an_event_starts_no_second_turn_while_one_goes_on(state: SessionState) -> None:
    add(state, id="fern", then="turn", recurring=True)
    (item,) = intentions.notice(state, "home")
    assert said(item) == "You meant to remember this, and the event 'home' happened: water the fern"
    assert told(state) == []
    intentions.started(state, item, "turn-1", NOW)
    assert intentions.notice(state, "home") == []
    end(state, "turn-1")
    assert [item.id for item in intentions.notice(state, "home")] == ["fern"]


def test_an_intention_that_changed_since_it_was_looked_up_does_not_stand(
    state: SessionState,
) -> None:
    add(state, id="fern", then="turn")
    add(state, id="cactus", then="turn")
    fern, cactus = intentions.notice(state, "home")
    assert intentions.stands(state, fern)
    assert intentions.stands(state, cactus)
    intentions.started(state, fern, "turn-1", NOW)
    intentions.cancel(state, "cactus")
    assert not intentions.stands(state, fern)
    assert not intentions.stands(state, cactus)


def test_what_a_lost_turn_was_started_for_is_told_by_the_next_one_and_a_done_one_is_over(
    state: SessionState,
) -> None:
    for name in ("done", "lost", "weekly", "idle"):
        add(state, id=name, then="turn", recurring=name == "weekly")
    for item in intentions.notice(state, "home")[:3]:
        intentions.started(state, item, f"turn of {item.id}", NOW)
    kept = KeptIntentions(waiting=state.intentions, digests=state.intention_digests)
    left = intentions.still_meant(kept, {"turn of done", "turn of weekly"})
    assert [(item.id, item.due, item.turn) for item in left.waiting] == [
        ("lost", True, None),
        ("weekly", False, None),
        ("idle", False, None),
    ]
    assert left.digests == state.intention_digests


def test_intentions_survive_as_json(state: SessionState) -> None:
    add(state, id="weekly", at=NOW, recurring=True, every=WEEK, then="turn")
    add(state, id="vet", cue="the cat", tier=3)
    again = SessionState.model_validate_json(state.model_dump_json())
    assert again == state
    assert intentions.drop_all(again) == ["weekly", "vet"]
    assert again.intentions == []


def test_what_is_too_long_says_so_with_a_stable_code() -> None:
    with pytest.raises(GMIError) as caught:
        parse({"content": "x", "event": "e" * 201}, Intend)
    assert caught.value.code == "SYS_VALIDATION_ERROR"
