"""The scores of an answer, read from a judge's words."""

from __future__ import annotations

from ....personas.errors import ToolError
from ....personas.metaprompts.json_text import NoObjectError, object_in
from ....personas.traits import is_number

CRITERIA = ("relevance", "clarity", "accuracy", "helpfulness")


def read_scores(text: str) -> dict[str, float]:
    """The scores in a judge's answer.

    Raises:
        ToolError: A criterion is missing or is no number from 0 to 1; nothing is taken by half.
    """
    try:
        scores = object_in(text)
    except NoObjectError as error:
        raise ToolError(
            f"the answer could not be judged: the judge gave no scores: {error}; try again"
        ) from None
    wrong = [
        name for name in CRITERIA if not is_number(scores.get(name)) or not 0 <= scores[name] <= 1
    ]
    if wrong:
        raise ToolError(
            f"the answer could not be judged: the judge gave no number from 0 to 1 for "
            f"{', '.join(wrong)}; try again"
        )
    return {name: round(float(scores[name]), 3) for name in CRITERIA}
