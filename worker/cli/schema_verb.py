"""The verb schema: what other languages need to talk to a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ...personas.memory_health import MemoryHealth
from ...personas.memory_lifecycle import LifecycleActionResponse, MemoryLifecycleEvent
from ...workflows.chunks import CHUNK_TOPIC, Chunk, ChunkBatch
from ...workflows.intention_calls import (
    CancelIntention,
    CancelledIntention,
    Intend,
    IntentionAck,
    IntentionList,
    Notice,
    NoticeAck,
)
from ...workflows.memory import Care, CareAnswer, Consolidate, MaintenanceReport
from ...workflows.mind_calls import (
    Feedback,
    FeedbackAck,
    MindShown,
    Perceive,
    Reflected,
    SetTrait,
    TraitsView,
    WordsForgotten,
)
from ...workflows.pages import Page, Read
from ...workflows.state import WORKFLOW_PREFIX, SessionStart
from ...workflows.steps import ToolCallInput, ToolOutcome
from ...workflows.trace import TraceTail
from ...workflows.turns import (
    AwaitTurn,
    CloseSession,
    PendingView,
    PersonaAck,
    RefreshPersona,
    ReplaceHistory,
    Settled,
    StateView,
    StopAck,
    StopTurn,
    SubmitTurn,
    ToolResults,
    ToolResultsAck,
    TurnList,
    TurnTicket,
    TurnView,
    UsageView,
    WorkingMemoryView,
)
from ...workflows.writes import BlobRefs, Done, Keep
from .arguments import Context, Grammar
from .exit_codes import ExitCode

Kind = Literal["update", "signal", "query"]


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler of the session workflow.

    Attributes:
        kinds: As what it can be called; an update answers, a signal does not.
        input: Its one argument, or ``None``.
        result: Its answer, or ``None``.
    """

    kinds: tuple[Kind, ...]
    input: type[BaseModel] | None
    result: type[BaseModel] | None


HANDLERS: dict[str, Handler] = {
    "initialize": Handler(("update",), None, StateView),
    "submit_turn": Handler(("update",), SubmitTurn, TurnTicket),
    "await_turn": Handler(("update",), AwaitTurn, TurnTicket),
    "tool_results": Handler(("update", "signal"), ToolResults, ToolResultsAck),
    "stop_turn": Handler(("update", "signal"), StopTurn, StopAck),
    "replace_history": Handler(("update",), ReplaceHistory, TurnTicket),
    "clear_history": Handler(("update",), None, TurnTicket),
    "refresh_persona": Handler(("update",), RefreshPersona, PersonaAck),
    "lifecycle_event": Handler(("update",), MemoryLifecycleEvent, LifecycleActionResponse),
    "memory_health": Handler(("update",), None, MemoryHealth),
    "settle": Handler(("update",), None, Settled),
    "intend": Handler(("update",), Intend, IntentionAck),
    "cancel_intention": Handler(("update",), CancelIntention, CancelledIntention),
    "notice": Handler(("update",), Notice, NoticeAck),
    "perceive": Handler(("update",), Perceive, TurnTicket),
    "set_trait": Handler(("update",), SetTrait, TraitsView),
    "record_feedback": Handler(("update",), Feedback, FeedbackAck),
    "reflect": Handler(("update",), None, Reflected),
    "close": Handler(("update", "signal"), CloseSession, Done),
    "chunks": Handler(("signal",), ChunkBatch, None),
    "words_forgotten": Handler(("signal",), WordsForgotten, None),
    "get_state": Handler(("query",), None, StateView),
    "get_turn": Handler(("query",), AwaitTurn, TurnView),
    "list_turns": Handler(("query",), None, TurnList),
    "list_pending": Handler(("query",), None, PendingView),
    "trace_tail": Handler(("query",), None, TraceTail),
    "list_intentions": Handler(("query",), None, IntentionList),
    "usage": Handler(("query",), None, UsageView),
    "working_memory": Handler(("query",), None, WorkingMemoryView),
    "mind": Handler(("query",), None, MindShown),
}

_OTHERS: tuple[type[BaseModel], ...] = (
    SessionStart,
    Read,
    Page,
    Keep,
    BlobRefs,
    Care,
    CareAnswer,
    Consolidate,
    MaintenanceReport,
    Chunk,
    ToolCallInput,
    ToolOutcome,
)


def add(grammar: Grammar) -> None:
    """Add the verb."""
    grammar.verb(
        "schema",
        schema,
        "Print the JSON Schemas of a session's handlers and chunks; in a pipe on one line.",
    )


async def schema(context: Context) -> int:
    """Print the document."""
    context.output.document(document())
    return ExitCode.OK


def document() -> dict[str, Any]:
    """Every handler with its schemas, the chunk, and the workflows, as one JSON document."""
    models = {model for handler in HANDLERS.values() for model in (handler.input, handler.result)}
    wanted = {model for model in (*models, *_OTHERS) if model is not None}
    _, definitions = models_json_schema(
        [(model, "validation") for model in sorted(wanted, key=str)],
        ref_template="#/$defs/{model}",
    )

    def ref(model: type[BaseModel] | None) -> dict[str, str] | None:
        return None if model is None else {"$ref": f"#/$defs/{model.__name__}"}

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "workflows": {
            "GMISession": {
                "id": f"{WORKFLOW_PREFIX}<session id>",
                "input": ref(SessionStart),
                "start": "update-with-start or signal-with-start, conflict policy USE_EXISTING",
            },
            "GMIRead": {"input": ref(Read), "result": ref(Page)},
            "GMIMemory": {"input": ref(Care), "result": ref(CareAnswer)},
            "GMIConsolidation": {"input": ref(Consolidate), "result": ref(MaintenanceReport)},
            "GMIKeep": {"input": ref(Keep), "result": ref(BlobRefs)},
        },
        "handlers": {
            name: {
                "kind": list(handler.kinds),
                "input": ref(handler.input),
                "result": ref(handler.result),
            }
            for name, handler in HANDLERS.items()
        },
        "chunk": {"topic": CHUNK_TOPIC, **(ref(Chunk) or {})},
        "tool": {"input": ref(ToolCallInput), "result": ref(ToolOutcome)},
        "$defs": definitions["$defs"],
    }
