"""How a text feels: its valence by a lexicon."""

from __future__ import annotations

import math

from vader import polarity_scores

MAX_CHARS = 20_000
"""Characters that are looked at; what follows changes the whole little."""


def valence(text: str) -> float:
    """The valence of an English text, in [-1, 1]; 0 for one that the lexicon knows nothing of.

    Hutto & Gilbert (2014), VADER: negation, intensifiers and emoji count.
    """
    if not text.strip():
        return 0.0
    found = float(polarity_scores(text[:MAX_CHARS])["compound"])
    return max(-1.0, min(1.0, found)) if math.isfinite(found) else 0.0
