"""The scores of an answer, read from a judge's words."""

from __future__ import annotations

import json
import re
from typing import Any

from ....personas.errors import ToolError
from ....personas.traits import is_number

CRITERIA = ("relevance", "clarity", "accuracy", "helpfulness")

_OBJECT = re.compile(r"\{[^{}]*\}")


def read_scores(text: str) -> dict[str, float]:
    """The scores in a judge's answer.

    Raises:
        ToolError: A criterion is missing or is no number from 0 to 1; nothing is taken by half.
    """
    found = _OBJECT.search(text)
    try:
        scores: Any = json.loads(found.group(0)) if found else None
    except ValueError:
        scores = None
    if not isinstance(scores, dict):
        raise ToolError("the answer could not be judged: the judge gave no scores; try again")
    wrong = [
        name for name in CRITERIA if not is_number(scores.get(name)) or not 0 <= scores[name] <= 1
    ]
    if wrong:
        raise ToolError(
            f"the answer could not be judged: the judge gave no number from 0 to 1 for "
            f"{', '.join(wrong)}; try again"
        )
    return {name: round(float(scores[name]), 3) for name in CRITERIA}
