"""What a memory may be used for, by where it comes from, and when it has to be checked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .traces import DAY, HOUR

Purpose = Literal["any", "personalization", "fact_claim", "authorization"]

PURPOSES: tuple[Purpose, ...] = ("personalization", "fact_claim", "authorization")


@dataclass(frozen=True, slots=True)
class Policy:
    """What a memory may be used for.

    Attributes:
        authorization: To decide what somebody may do.
        personalization: To be at somebody's service.
        fact_claim: To state something as a fact.
        verify_after: Seconds after which it has to be verified again; ``None`` never.
    """

    authorization: bool = False
    personalization: bool = True
    fact_claim: bool = False
    verify_after: float | None = None

    def allows(self, purpose: Purpose) -> bool:
        """Whether the memory may be used for a purpose."""
        return purpose == "any" or bool(getattr(self, purpose))


POLICIES: Mapping[str, Policy] = {
    "user_statement": Policy(),
    "agent_inference": Policy(verify_after=HOUR),
    "tool_result": Policy(authorization=True, fact_claim=True),
    "observation": Policy(),
    "reflection": Policy(verify_after=HOUR),
    "external": Policy(personalization=False),
    "fact_graph": Policy(fact_claim=True),
    "typed_network": Policy(),
    "retrieved_document": Policy(personalization=False, fact_claim=True, verify_after=DAY),
    "human_approval": Policy(authorization=True, fact_claim=True),
    "identity_provider": Policy(authorization=True, fact_claim=True, verify_after=HOUR),
    "system_config": Policy(authorization=True, personalization=False, fact_claim=True),
    "external_api": Policy(fact_claim=True, verify_after=HOUR),
    "memory_summary": Policy(verify_after=HOUR),
}
"""What a memory of each source may be used for where nothing else is said of it."""


def policy_of(source: str, own: Mapping[str, Any] | None) -> Policy:
    """The policy of a memory: its own where it has one, else its source's."""
    if own is None:
        return POLICIES.get(source, Policy())
    known = {name: own[name] for name in Policy.__dataclass_fields__ if name in own}
    return Policy(**known)


def needs_verifying(policy: Policy, verified_at: float, now: float) -> bool:
    """Whether a memory that was verified, or made, so long ago has to be checked again."""
    return policy.verify_after is not None and now - verified_at > policy.verify_after
