"""How far a call beside the turns has come: kept in heartbeat details for its next attempt."""

from __future__ import annotations

from pydantic import BaseModel, Field

from ..personas.messages import Usage
from .asking import billed
from .heartbeats import Resumable


class CallBill(BaseModel):
    """What one hop of one attempt was billed, and for which of the call's answers, from 0."""

    step: int
    attempt: int
    hop: int
    provider: str
    model: str
    usage: Usage
    failed: bool = False


class CallProgress(Resumable):
    """What earlier attempts of a call have found out.

    Attributes:
        answers: What the model has said; each was of no use but perhaps the last.
        provider: Who said it.
        bills: Everything that was billed.
        crashes: Attempts that ended by an error that nobody foresaw.
    """

    answers: list[str] = Field(default_factory=list)
    provider: str = ""
    model: str = ""
    bills: list[CallBill] = Field(default_factory=list)
    crashes: int = 0

    @property
    def by_model(self) -> dict[str, Usage]:
        """The bills of each ``provider:model``."""
        found: dict[str, Usage] = {}
        for bill in self.bills:
            key = f"{bill.provider}:{bill.model}"
            found[key] = found.get(key, Usage()) + bill.usage
        return found

    @property
    def usage(self) -> Usage:
        """All bills together."""
        return billed(bill.usage for bill in self.bills)
