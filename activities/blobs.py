"""JSON values as the store keeps them."""

from __future__ import annotations

import json
from typing import Any


def dump_value(value: Any) -> bytes:
    """Canonical JSON of a value, so that equal values share one blob."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode()


def load_value(data: bytes) -> Any:
    """The value that :func:`dump_value` wrote."""
    return json.loads(data)
