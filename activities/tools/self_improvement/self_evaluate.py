"""The tool with which an agent judges its answers and adjusts how it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ....personas.errors import ToolError
from ....personas.self_changes import PLACES, SelfChange, latest, learned_traits
from ....personas.self_improvement import check_param, refused
from ....personas.traits import HEXACO, is_number
from ....workflows.steps import ToolOutcome
from ...learning.store import Draft
from ..context import ToolContext
from .adapt_personality import trait_draft
from .asking import Asking, Parts, asking, needed
from .names import SELF_EVALUATE
from .scores import CRITERIA

Action = Literal["evaluate", "adjust", "report"]
Param = Literal["temperature", "verbosity", "personality"]

MAX_LISTED = 20
MAX_REASON = 1000


class SelfEvaluate:
    """Serves :data:`~.names.SELF_EVALUATE`.

    Args:
        parts: What the tools share.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(
        self,
        action: Action,
        context: ToolContext,
        response: str | None = None,
        query: str | None = None,
        param: Param | None = None,
        value: Any = None,
        reasoning: str | None = None,
    ) -> ToolOutcome:
        """Have an answer of yours judged, adjust how you answer, or report on both.

        Args:
            action: What to do.
            response: For evaluate: the answer.
            query: For evaluate: what was asked.
            param: For adjust: what to adjust.
            value: For adjust: for temperature a number from 0 to 2, for verbosity concise,
                balanced or detailed, for personality an object with trait and delta.
            reasoning: For adjust: why.
            context: Where the call stands.
        """
        ask = await asking(SELF_EVALUATE, self._parts, context)
        if action == "report":
            return ToolOutcome(value=await _report(ask))
        if action == "evaluate":
            needed(SELF_EVALUATE, response=response, query=query)
            return await ask.made() or await _evaluate(ask, response or "", query or "")
        needed(SELF_EVALUATE, param=param, value=value, reasoning=reasoning)
        assert param is not None  # just checked
        made = await ask.made()
        return made or await _adjust(ask, param, value, (reasoning or "")[:MAX_REASON])


async def _evaluate(ask: Asking, response: str, query: str) -> ToolOutcome:
    judge, limit = ask.parts.judge, ask.rules.self_eval.max_evaluations_per_session
    if judge is None:
        raise ToolError("this worker has no judge, so nothing is evaluated")
    _check_limit(ask, await _session(ask, ["evaluation"]), limit)
    judged = await judge(ask, query, response)

    def decide(changes: Sequence[SelfChange]) -> Draft:
        count = _check_limit(ask, _mine(ask, changes), limit) + 1
        result: dict[str, Any] = {
            "scores": judged.scores,
            "evalCount": count,
            "remainingEvaluations": limit - count,
        }
        patch: dict[str, Any] = {"usage": judged.usage.model_dump(mode="json")}
        if ask.refusal is not None:
            result["selfChangeRefused"] = ask.refusal
        else:
            scores = ", ".join(f"{name} {judged.scores[name]:g}" for name in CRITERIA)
            patch["remember"] = f"I judged my answer to {query[:200]!r}: {scores}."
        data = {"query": query[:500], "result": result, "patch": patch}
        return Draft("evaluation", str(count), data, kept=False)

    outcome = await ask.make(decide, ["evaluation"])
    assert outcome is not None  # the decision is a draft or an error
    return outcome


async def _adjust(ask: Asking, param: Param, value: Any, reasoning: str) -> ToolOutcome:
    ask.gate()
    rules = ask.rules.self_eval
    if param == "personality":
        if not rules.auto_adjust or param not in rules.adjustable_params:
            raise refused(
                ask.tool, "not_allowed", "the persona does not let itself adjust personality"
            )
        trait, delta = _trait_and_delta(ask, value)

        def decide(changes: Sequence[SelfChange]) -> Draft:
            draft = trait_draft(ask, changes, trait, delta, reasoning)
            found = draft.data["result"]
            draft.data["result"] = {
                "param": param,
                "previousValue": found["previousValue"],
                "newValue": found["newValue"],
                **found,
            }
            return draft

        outcome = await ask.make(decide, ["trait"])
    else:
        new = check_param(ask.tool, param, value, rules)

        def decide(changes: Sequence[SelfChange]) -> Draft:
            before = latest(changes, "param").get(param)
            result = {
                "param": param,
                "previousValue": None if before is None else before.data.get("value"),
                "newValue": new,
            }
            patch = {"params": {param: new}}
            data = {"value": new, "reasoning": reasoning, "result": result, "patch": patch}
            return Draft("param", param, data)

        outcome = await ask.make(decide, ["param"])
    assert outcome is not None  # the decision is a draft or an error
    return outcome


async def _report(ask: Asking) -> dict[str, Any]:
    changes = await _session(ask, ["evaluation", "param", "trait"])
    evaluations = [change for change in changes if change.kind == "evaluation"]
    scores = [change.result["scores"] for change in evaluations]
    adjusted = [change for change in changes if change.kind in ("param", "trait")]
    return {
        "totalEvaluations": len(evaluations),
        "averageScores": {
            name: round(sum(score[name] for score in scores) / len(scores), 3) for name in CRITERIA
        }
        if scores
        else {},
        "adjustments": [
            {**change.result, "undone": change.undone_at is not None}
            for change in adjusted[-MAX_LISTED:]
        ],
        "personalityDrift": learned_traits(adjusted, ask.call.now),
        "evaluations": [
            {"query": change.data["query"], "scores": change.result["scores"]}
            for change in evaluations[-MAX_LISTED:]
        ],
    }


async def _session(ask: Asking, kinds: Sequence[Any]) -> list[SelfChange]:
    """The changes of this session; a report needs no learner and no mode."""
    return _mine(ask, await ask.parts.store.changes(ask.call.holder, kinds))


def _mine(ask: Asking, changes: Sequence[SelfChange]) -> list[SelfChange]:
    return [change for change in changes if change.session == ask.mind.session]


def _check_limit(ask: Asking, evaluations: Sequence[SelfChange], limit: int) -> int:
    if len(evaluations) >= limit:
        raise refused(ask.tool, "limit_reached", f"this session has made its {limit} evaluations")
    return len(evaluations)


def _trait_and_delta(ask: Asking, value: Any) -> tuple[str, float]:
    trait = value.get("trait") if isinstance(value, dict) else None
    delta: Any = value.get("delta") if isinstance(value, dict) else None
    if trait not in HEXACO or not is_number(delta):
        raise refused(
            ask.tool,
            "invalid_value",
            f"personality takes an object with trait, one of {', '.join(HEXACO)}, and a number "
            "delta",
        )
    return str(trait), round(float(delta), PLACES)
