"""Messages written in every form are read again as they were."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.personas.messages import ImagePart, Message, TextPart

PARTS = Message(
    role="user",
    content=[
        TextPart(text="look"),
        ImagePart(url="https://example.org/a.png"),
        ImagePart(blob="b"),
    ],
)


@pytest.mark.parametrize("left_out", [{}, {"exclude_defaults": True}, {"exclude_none": True}])
def test_content_in_parts_survives_every_way_of_writing(left_out: dict[str, Any]) -> None:
    assert Message.model_validate(PARTS.model_dump(mode="json", **left_out)) == PARTS
    assert Message.model_validate_json(PARTS.model_dump_json(**left_out)) == PARTS
