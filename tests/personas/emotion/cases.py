"""Worked examples of the emotion model, and how they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gmi.personas.affect import Vad
from gmi.personas.emotion import EmotionState, Needs

CASES: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "model.json").read_text())
EVENTS: dict[str, Any] = CASES["events"]


def near(values: Any) -> Any:
    return pytest.approx(values, abs=1e-6)


def state_of(row: dict[str, Any]) -> EmotionState:
    return EmotionState(
        core=Vad.at(tuple(row["core"])),
        mood=Vad.at(tuple(row["mood"])),
        body=row["body"],
        needs=Needs(
            **dict(zip(("autonomy", "competence", "relatedness"), row["needs"], strict=True))
        ),
        at=row["at"],
    )


def numbers_of(state: EmotionState) -> list[float]:
    needs = state.needs
    return [
        *state.core.point,
        *state.mood.point,
        state.body,
        needs.autonomy,
        needs.competence,
        needs.relatedness,
        state.at,
    ]
