"""How far a call beside the turns has come: kept in heartbeat details for its next attempt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from temporalio import activity

from ..personas.messages import Usage


class CallBill(BaseModel):
    """What one hop of one attempt was billed, and for which of the answers."""

    step: int
    attempt: int
    hop: int
    provider: str
    model: str
    usage: Usage
    failed: bool = False


class CallProgress(BaseModel):
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

    @classmethod
    def resume(cls, details: Sequence[Any]) -> CallProgress:
        """The progress in an activity's heartbeat details, or the start of a call."""
        with suppress(ValidationError, IndexError, TypeError):
            return cls.model_validate(details[0])
        return cls()

    @property
    def usage(self) -> Usage:
        """All bills together."""
        total = Usage()
        for bill in self.bills:
            total = total + bill.usage
        return total

    def beat(self) -> None:
        """Record the progress with the server."""
        activity.heartbeat(self.model_dump(mode="json"))
