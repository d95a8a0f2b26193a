"""A model's reply while it arrives, and what becomes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..personas.messages import ToolCall, Usage
from ..workflows.chunks import ChunkItem, calls_item, usage_item
from ..workflows.decode import encoded_size
from ..workflows.steps import INLINE_TEXT_BYTES, ROUND_BYTES, SMALL_BYTES, PlannedCall
from ..workflows.turns import ErrorInfo
from .blobs import dump_value
from .catalog import Toolset
from .gateway.failures import ProviderFailure
from .gateway.models import price
from .gateway.provider import Finished, ProviderEvent, TextDelta, ToolCallDelta, UsageReport
from .store.protocol import Store


class Reply:
    """Collects a provider's events.

    Args:
        provider: The provider's name.
        model: The model's id.
    """

    def __init__(self, provider: str, model: str) -> None:
        self.provider = provider
        self.model = model
        self._text: list[str] = []
        self._called = False
        self._finished: Finished | None = None
        self._unsaid: Usage | None = None
        self._half = ""
        self.usage = Usage()

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def said_something(self) -> bool:
        """Whether text or a tool call has arrived; from then on no other hop may answer."""
        return self._called or any(self._text)

    @property
    def finished(self) -> Finished:
        """The provider's terminal event.

        Raises:
            ProviderFailure: The stream ended without one.
        """
        if self._finished is None:
            raise ProviderFailure(
                f"{self.provider}: the stream ended without its terminal event",
                kind="stream",
                provider=self.provider,
            )
        return self._finished

    def check_finished(self) -> None:
        """Refuse a stream that ended without its terminal event.

        Raises:
            ProviderFailure: It did.
        """
        _ = self.finished

    def take(self, event: ProviderEvent) -> list[ChunkItem]:
        """Take an event; returns the chunks that it makes at once."""
        match event:
            case TextDelta(text):
                return self._say(text)
            case ToolCallDelta():
                self._called = True
                return []
            case UsageReport(usage):
                earlier = self._running_total() if usage != self.usage else []
                self.usage = self._unsaid = usage
                return earlier
            case Finished():
                self._finished = clean(event)
                self._called = self._called or bool(event.calls)
                whole = event.text if event.text and not self._text else ""
                return self._say(whole, last=True)

    def closing_items(self, calls: Sequence[ToolCall]) -> list[ChunkItem]:
        """The chunks that close the step: its calls, then its usage."""
        return [*([calls_item(calls)] if calls else []), *self._running_total()]

    def _say(self, text: str, *, last: bool = False) -> list[ChunkItem]:
        text, self._half = self._half + text, ""
        if not last and text and "\ud800" <= text[-1] <= "\udbff":
            # A character cut in two: its other half comes with the next piece.
            text, self._half = text[:-1], text[-1]
        if not text:
            return []
        text = well_formed(text)
        # A whole text came before the usage that was reported with it.
        said = [] if last else self._running_total()
        self._text.append(text)
        return [*said, ChunkItem(type="text_delta", content=text)]

    def _running_total(self) -> list[ChunkItem]:
        """The newest report, once something follows it: the last one closes the step."""
        if self._unsaid is None or not self._unsaid.total_tokens:
            return []
        usage = price(self.model, self.provider, self._unsaid)
        self._unsaid = None
        return [usage_item(usage)]


def well_formed(text: str) -> str:
    """The text with every lone surrogate replaced: JSON in UTF-8 cannot hold one."""
    if text.isascii():
        return text
    # Two halves of one character become that character first.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean(event: Finished) -> Finished:
    """The terminal event with only what JSON in UTF-8 can hold."""
    calls = [
        call.model_copy(
            update={
                "id": well_formed(call.id),
                "name": well_formed(call.name),
                "arguments": cleaned(call.arguments),
                "malformed": None if call.malformed is None else well_formed(call.malformed),
            }
        )
        for call in event.calls
    ]
    replay = [block.model_copy(update={"data": cleaned(block.data)}) for block in event.replay]
    return replace(event, calls=calls, replay=replay)


def cleaned(value: Any) -> Any:
    """A JSON value with well-formed texts, and ``None`` in place of what is no number."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {well_formed(str(key)): cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    return value


def unique_calls(calls: Iterable[ToolCall], used: set[str], prefix: str) -> list[ToolCall]:
    """The calls with ids that no other call of the conversation has.

    Some servers count their call ids from zero in every answer.
    """
    seen = set(used)
    unique = []
    for index, call in enumerate(calls):
        if not call.id or call.id in seen:
            call = call.model_copy(update={"id": f"call-{prefix}-{index}"})
        seen.add(call.id)
        unique.append(call)
    return unique


async def planned_calls(
    calls: Sequence[ToolCall], toolset: Toolset, store: Store
) -> list[PlannedCall]:
    """The calls with their routes; one that cannot run carries the model's answer instead."""
    planned = []
    held = 0
    for call in calls:
        route = toolset.routes.get(call.name)
        problem = None
        if call.malformed is not None:
            route = None
            problem = ErrorInfo(
                code="TOOL_ARGUMENTS_MALFORMED",
                message="The arguments are not a JSON object; call the tool again with valid JSON.",
                details={"received": call.malformed[:300]},
            )
        elif route is None:
            problem = ErrorInfo(
                code="TOOL_UNKNOWN",
                message=f"There is no tool {call.name!r}.",
                details={"known": sorted(toolset.routes)[:50]},
            )
        ref, arguments = None, call.arguments
        size = encoded_size(arguments)
        if size > INLINE_TEXT_BYTES or (size > SMALL_BYTES and held + size > ROUND_BYTES):
            # A call that cannot run needs its arguments no more.
            if route is not None:
                [ref] = await store.put_blobs("json", [dump_value(arguments)])
            arguments, size = {}, 0
        held += size
        planned.append(
            PlannedCall(
                id=call.id,
                name=call.name,
                arguments=arguments,
                arguments_ref=ref,
                route=route,
                problem=problem,
            )
        )
    return planned
