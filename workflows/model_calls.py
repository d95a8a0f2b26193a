"""What crosses the model port for a call beside the turns: a mind that asks itself something."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..personas.emotion import AppraisalVector
from ..personas.messages import Usage
from ..personas.metaprompts.answers import MindPatch
from ..personas.metaprompts.variables import MindView
from .mind_calls import Perceive
from .steps import At, PortModel, Segment
from .turns import HopSpec

CALL_DEADLINE = 120.0
"""Seconds after which the answer to such a call is worth nothing."""

APPRAISAL_DEADLINE = 60.0
"""Seconds that the appraisal of an event may take, which its turn waits for."""

Purpose = Literal["metaprompt", "reflect", "appraise"]


class ModelCall(PortModel):
    """Input of ``gmi.model.call``.

    Attributes:
        at: The turn that the call belongs to.
        purpose: ``metaprompt`` for one that a turn made due, ``reflect`` for one that somebody
            asked for, ``appraise`` for an event that is to be appraised.
        number: Tells the calls of one turn and one metaprompt apart, in the ledger too: the trace
            entry that says that this one runs. 0 for an appraisal, of which a turn has one.
        id: The metaprompt; with the turn and the number it names the call. Empty for an appraisal.
        event: The event to appraise.
        path: The path that ends with the turn.
        view: The mind, in at most 4 KB.
        model: ``provider:model`` over the persona's; a metaprompt's own model goes before both.
        fallback: Fallback chain over the persona's.
        deadline: Seconds from the first attempt's scheduling; an answer that comes later is
            dropped.
    """

    at: At
    purpose: Purpose
    number: int = 0
    id: str = ""
    event: Perceive | None = None
    persona_digest: str
    path: list[Segment] = Field(default_factory=list)
    view: MindView = MindView()
    model: str | None = None
    fallback: list[HopSpec] | None = None
    credentials: dict[str, str] = Field(default_factory=dict)
    user_id: str | None = None
    deadline: float = Field(default=CALL_DEADLINE, gt=0)


class CallResult(PortModel):
    """Result of ``gmi.model.call``: what the answer changes, or why there is none.

    Attributes:
        patch: What the answer changes; ``None`` when the call came to nothing.
        appraisal: What the event means; ``None`` when the call came to nothing.
        refused: Why it came to nothing, in words.
        code: The same for programs: ``METAPROMPT_UNKNOWN``, ``METAPROMPT_DEADLINE``,
            ``METAPROMPT_ANSWER_INVALID``, the last two with ``APPRAISAL`` in the place of
            ``METAPROMPT`` for an appraisal, or the code of the error that ended it.
        reasons: What was wrong with the answer.
        usage: What the call was billed: all its attempts, failed hops and repairs together.
        by_model: The same by ``provider:model``.
        provider: Who answered.
        attempts: Attempts that it took.
        repaired: The first answer was of no use, and the second one was.
    """

    patch: MindPatch | None = None
    appraisal: AppraisalVector | None = None
    refused: str | None = None
    code: str | None = None
    reasons: list[str] = Field(default_factory=list)
    usage: Usage = Usage()
    by_model: dict[str, Usage] = Field(default_factory=dict)
    provider: str = ""
    model: str = ""
    attempts: int = 1
    repaired: bool = False
