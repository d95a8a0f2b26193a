"""What crosses the ports when a turn ends, a history is given, or something large is kept."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ..personas.messages import Message
from ..personas.mind import Mind
from ..personas.prospective import Intention
from .steps import At, OpenTurn, PortModel, StoredMessage
from .trace import TraceEntry
from .turns import TurnOutput, TurnStatus


class PlacedMessage(PortModel):
    """A message with its place in the turn."""

    step: int
    index: int
    stored: StoredMessage


class CloseTurn(PortModel):
    """Input of ``gmi.store.close_turn``.

    Attributes:
        opening: Set when no step recorded the turn.
        step_counter: Write counter of the turn's last step; what that step itself recorded as the
            turn's end does not stand against this one.
        layout: Messages of each step that the workflow recorded; others are removed.
        messages: Messages to add, each with its step and index.
        head: The session's head from now on.
    """

    at: At
    status: TurnStatus
    output: TurnOutput
    opening: OpenTurn | None = None
    layout: list[int] = Field(default_factory=list)
    step_counter: int = 0
    messages: list[PlacedMessage] = Field(default_factory=list)
    trace: list[TraceEntry] = Field(default_factory=list)
    head: str | None = None


class ImportHistory(PortModel):
    """Input of ``gmi.store.import_history``: a new root turn that holds a given history.

    Attributes:
        messages: The history, oldest first; an empty one empties the session's.
        messages_ref: Digest of the messages where they are too large to be carried.
        forget: Hide older turns, and blank their trace details, unless the new history still
            holds their input.
    """

    at: At
    opening: OpenTurn
    messages: list[Message] = Field(default_factory=list)
    messages_ref: str | None = None
    forget: bool = True
    output: TurnOutput
    trace: list[TraceEntry] = Field(default_factory=list)


class ImportResult(PortModel):
    """Turns whose recorded details were forgotten."""

    forgotten: list[str] = Field(default_factory=list)
    messages: int = 0


class Keep(PortModel):
    """Input of the workflow ``GMIKeep``.

    Attributes:
        data: What to keep, in base64; at most 700 KB before encoding.
    """

    data: str


class PutBlobs(PortModel):
    """Input of ``gmi.store.put_blobs``.

    Attributes:
        values: JSON values.
        data: Bytes in base64, kept as they are.
    """

    values: list[Any] = Field(default_factory=list)
    data: list[str] = Field(default_factory=list)


class BlobRefs(PortModel):
    """Digests in the order of the values, then of the data."""

    digests: list[str]


class KeepMind(PortModel):
    """Input of ``gmi.store.keep_mind``: the mind that a turn left."""

    at: At
    mind: Mind


class KeptIntentions(PortModel):
    """What a session means to do later.

    Attributes:
        waiting: The intentions, the oldest first.
        digests: What each of them says, and what the last ones said that are over.
    """

    waiting: list[Intention] = Field(default_factory=list)
    digests: dict[str, str] = Field(default_factory=dict)


class KeepIntentions(PortModel):
    """Input of ``gmi.store.keep_intentions``."""

    at: At
    held: KeptIntentions


class KnownTurn(PortModel):
    """Input of ``gmi.store.known_turn``."""

    at: At
    opening: OpenTurn


class KnownOutput(PortModel):
    """What a turn came to that was made before; ``None`` for a new one."""

    output: TurnOutput | None = None


class Done(PortModel):
    """Result of an activity that only writes."""


class Kept(Done):
    """Result of ``gmi.store.keep_mind``.

    Attributes:
        forgotten: Turns whose words the mind held though they are forgotten.
    """

    forgotten: list[str] = Field(default_factory=list)
