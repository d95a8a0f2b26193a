"""A model's reply while it arrives, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..personas.messages import ToolCall, Usage
from ..workflows.chunks import ChunkItem
from ..workflows.decode import encoded_size
from ..workflows.steps import INLINE_TEXT_BYTES, PlannedCall
from ..workflows.turns import ErrorInfo
from .blobs import dump_value
from .catalog import Toolset
from .gateway.failures import ProviderFailure
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
                if not text:
                    return []
                self._text.append(text)
                return [ChunkItem(type="text_delta", content=text)]
            case ToolCallDelta():
                self._called = True
                return []
            case UsageReport(usage):
                self.usage = usage
                return []
            case Finished():
                self._finished = event
                self._called = self._called or bool(event.calls)
                if event.text and not self._text:
                    self._text.append(event.text)
                    return [ChunkItem(type="text_delta", content=event.text)]
                return []

    def closing_items(self, calls: Sequence[ToolCall], usage: Usage) -> list[ChunkItem]:
        """The chunks that close the step: its calls, then its usage."""
        items = []
        if calls:
            content = [
                {"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls
            ]
            metadata = {"execution_mode": "internal", "requires_external_tool_result": False}
            items.append(ChunkItem(type="tool_call_request", content=content, metadata=metadata))
        content_usage = {**usage.model_dump(), "total_tokens": usage.total_tokens}
        items.append(ChunkItem(type="usage_update", content=content_usage, usage=usage))
        return items


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
        ref = None
        if route is not None and encoded_size(call.arguments) > INLINE_TEXT_BYTES:
            [ref] = await store.put_blobs("json", [dump_value(call.arguments)])
        planned.append(
            PlannedCall(
                id=call.id,
                name=call.name,
                arguments={} if ref else call.arguments,
                arguments_ref=ref,
                route=route,
                problem=problem,
            )
        )
    return planned
