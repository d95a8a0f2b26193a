from __future__ import annotations

from dataclasses import asdict
from typing import get_args

import pytest

from gmi.activities.memory.traces import DAY, HOUR, SourceType
from gmi.activities.memory.trust import POLICIES, Policy, needs_verifying, policy_of


def test_every_source_has_a_policy() -> None:
    assert set(POLICIES) == set(get_args(SourceType))


@pytest.mark.parametrize(
    ("source", "authorization", "personalization", "fact_claim", "verify_after"),
    [
        ("user_statement", False, True, False, None),
        ("agent_inference", False, True, False, HOUR),
        ("tool_result", True, True, True, None),
        ("observation", False, True, False, None),
        ("reflection", False, True, False, HOUR),
        ("external", False, False, False, None),
        ("fact_graph", False, True, True, None),
        ("typed_network", False, True, False, None),
        ("retrieved_document", False, False, True, DAY),
        ("human_approval", True, True, True, None),
        ("identity_provider", True, True, True, HOUR),
        ("system_config", True, False, True, None),
        ("external_api", False, True, True, HOUR),
        ("memory_summary", False, True, False, HOUR),
    ],
)
def test_what_a_source_may_be_used_for(
    source: str,
    authorization: bool,
    personalization: bool,
    fact_claim: bool,
    verify_after: float | None,
) -> None:
    found = policy_of(source, None)
    assert found == Policy(authorization, personalization, fact_claim, verify_after)


def test_a_policy_of_its_own_stands_over_the_source() -> None:
    own = Policy(authorization=True, verify_after=5.0)
    assert policy_of("external", asdict(own)) == own
    assert policy_of("external", {"fact_claim": True, "from a newer version": 1}).fact_claim


def test_a_memory_has_to_be_verified_again_once_its_time_is_over() -> None:
    policy = Policy(verify_after=HOUR)
    assert not needs_verifying(policy, 0.0, HOUR)
    assert needs_verifying(policy, 0.0, HOUR + 1)
    assert not needs_verifying(Policy(), 0.0, 100 * DAY)
