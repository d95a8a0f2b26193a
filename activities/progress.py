"""How far a model step has come: kept in heartbeat details, so the next attempt goes on there.

A lost worker repeats its hop; only a provider's failure moves to the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from temporalio import activity

from ..personas.messages import Usage
from ..personas.sentiment import Sentiment
from ..workflows.steps import HopFailure
from .store.protocol import UsageRow


class Progress(BaseModel):
    """What earlier attempts of a step have found out.

    Attributes:
        hop: The hop to serve.
        tries: Failures of the provider at this hop; lost workers and stores do not count.
        waited: An attempt of this hop failed, and the step waited to ask it again.
        crashes: Attempts that ended by an error that nobody foresaw.
        failures: Every hop failure so far, for the trace and the bill.
        scored: The user's words were scored, and ``sentiment`` is what came of it.
        beside: What was asked beside the step was billed.
        unwritten: Rows of it that the ledger may not have yet.
    """

    hop: int = 0
    tries: int = 0
    waited: bool = False
    crashes: int = 0
    failures: list[HopFailure] = Field(default_factory=list)
    scored: bool = False
    sentiment: Sentiment | None = None
    beside: Usage = Usage()
    unwritten: list[UsageRow] = Field(default_factory=list)

    @classmethod
    def resume(cls, details: Sequence[Any], start_hop: int) -> Progress:
        """The progress in an activity's heartbeat details, or the start of a step."""
        with suppress(ValidationError, IndexError, TypeError):
            return cls.model_validate(details[0])
        return cls(hop=start_hop)

    def move(self, hop: int) -> None:
        """Go on to another hop."""
        self.hop, self.tries, self.waited = hop, 0, False

    def beat(self) -> None:
        """Record the progress with the server."""
        activity.heartbeat(self.model_dump(mode="json"))
