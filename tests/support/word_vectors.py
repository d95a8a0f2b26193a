"""Vectors for tests: texts that share words are near each other."""

from __future__ import annotations

import hashlib
import math
import re

DIMENSION = 64


def word_vector(text: str) -> list[float]:
    """A vector of length 1, made of the words of a text; their order does not count."""
    numbers = [0.0] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        numbers[digest[0] % DIMENSION] += 1.0
        numbers[digest[1] % DIMENSION] += 1.0
    length = math.hypot(*numbers) or 1.0
    return [number / length for number in numbers]
