"""How far a model step has come: kept in heartbeat details, so the next attempt goes on there.

A lost worker repeats its hop; only a provider's failure moves to the next one.
"""

from __future__ import annotations

from pydantic import Field

from ..personas.messages import Usage
from ..personas.sentiment import Sentiment
from ..workflows.steps import HopFailure
from .heartbeats import Resumable
from .store.protocol import UsageRow


class Progress(Resumable):
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

    def move(self, hop: int) -> None:
        """Go on to another hop."""
        self.hop, self.tries, self.waited = hop, 0, False
