"""The search attributes that sessions set, where the namespace has them."""

from __future__ import annotations

from typing import Any

from temporalio.common import SearchAttributeKey

PERSONA = SearchAttributeKey.for_keyword("GmiPersona")
USER = SearchAttributeKey.for_keyword("GmiUser")
STATUS = SearchAttributeKey.for_keyword("GmiStatus")
AWAITING_TOOL = SearchAttributeKey.for_bool("GmiAwaitingTool")

SEARCH_ATTRIBUTES: tuple[SearchAttributeKey[Any], ...] = (PERSONA, USER, STATUS, AWAITING_TOOL)
