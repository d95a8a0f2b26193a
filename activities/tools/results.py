"""What a tool returned, in the form that the workflow and the model read."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic_core import to_jsonable_python

from ...personas.errors import StoreError
from ...workflows.steps import INLINE_TEXT_BYTES, MAX_RESULT_BYTES, TOOL_INLINE_BYTES, ToolOutcome
from ...workflows.tool_round import not_json, result_text, too_large
from ...workflows.turns import ErrorInfo
from .threads import in_thread

MAX_PROBLEM = 500


class BlobStore(Protocol):
    """The part of the store that tools need."""

    async def put_blobs(self, kind: str, values: list[bytes], /) -> list[str]:
        """Keep values; returns their digests."""
        ...

    async def get_blob(self, digest: str, /) -> bytes:
        """A kept value."""
        ...


@dataclass(frozen=True)
class Encoded:
    """A result as JSON, and as the text that the model reads.

    Attributes:
        size: Bytes of the text in UTF-8.
    """

    value: Any
    text: str
    size: int


async def outcome_of(value: Any, store: BlobStore, name: str) -> ToolOutcome:
    """The outcome that carries a tool's result.

    A text over 8 KB is kept in the store and carried as a reference. A value that is not JSON,
    or over 2 MB, is an error result: to run the tool again would not help.

    Args:
        value: What the tool returned; a :class:`ToolOutcome` that carries a patch keeps it.
        store: Keeps large results.
        name: The tool's name.

    Raises:
        StoreError: The store failed, and the result is too large to go without it.
    """
    if isinstance(value, ToolOutcome):
        if value.is_error:
            return value
        made = await outcome_of(value.value, store, name)
        return made if made.is_error else made.model_copy(update={"patch": value.patch})
    # A large result takes long to encode, and every session shares the loop.
    encoded = await in_thread(lambda: encode(value), name)
    if isinstance(encoded, ErrorInfo):
        return error_outcome(encoded)
    if encoded.size <= INLINE_TEXT_BYTES:
        return ToolOutcome(value=encoded.value)
    blob = json.dumps(encoded.text, ensure_ascii=False).encode()
    try:
        [ref] = await store.put_blobs("tool_result", [blob])
    except StoreError:
        # The tool has run: its result goes by value, and the workflow keeps it later.
        if encoded.size > TOOL_INLINE_BYTES:
            raise
        return ToolOutcome(value=encoded.value)
    return ToolOutcome(ref=ref)


def error_outcome(error: ErrorInfo) -> ToolOutcome:
    """The outcome that tells the model of an error."""
    return ToolOutcome(is_error=True, error=error)


def encode(value: Any) -> Encoded | ErrorInfo:
    """A value as JSON and as text, or the error that says why it is neither."""
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return not_json("it is a generator, which may have no end; return a list")
    try:
        plain = to_jsonable_python(value)
        text = result_text(plain)
        size = len(text.encode())
    # A result's own serializer may raise anything.
    except Exception as error:
        return not_json(f"{type(error).__name__}: {error}"[:MAX_PROBLEM])
    if size > MAX_RESULT_BYTES:
        return too_large(size)
    return Encoded(plain, text, size)
