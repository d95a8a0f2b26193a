"""Where a memory comes from and how old it is, as a person would say it."""

from __future__ import annotations

from .ago import ago
from .mechanisms.temporal_gist import NAME
from .traces import SourceType, Trace

NAME_CHARS = 60

UNSURE_BELOW = 0.4
"""Confidence under which a memory is told as uncertain."""

SOURCES: dict[SourceType, str] = {
    "agent_inference": "you concluded",
    "tool_result": "a tool answered",
    "observation": "you noticed",
    "reflection": "you reflected",
    "external": "from outside",
    "fact_graph": "from your knowledge",
    "typed_network": "from your knowledge",
    "retrieved_document": "from a document",
    "human_approval": "confirmed by a person",
    "identity_provider": "from the sign-in",
    "system_config": "from the configuration",
    "external_api": "from another service",
    "memory_summary": "summed up from older memories",
}


def provenance(trace: Trace, now: float, user_name: str | None = None, mark: str = "") -> str:
    """Where a memory comes from, such as ``three weeks ago, the user said``.

    A user's words in a memory that several users share are ``someone``'s, since nothing says
    whose they were. Memories that were shortened, corrected or are doubted are marked.

    Args:
        trace: The memory.
        now: Seconds since the epoch.
        user_name: How to call the user; ``the user`` without it.
        mark: Something else to say of it.
    """
    when, source = ago(now - trace.created_at), source_of(trace, user_name)
    marks = []
    if is_gist(trace):
        marks.append("only the gist is left")
    if "corrected" in trace.mechanisms:
        marks.append("corrected since")
    if trace.confidence < UNSURE_BELOW:
        marks.append("uncertain")
    if mark:
        marks.append(mark)
    # Who said it stands directly before what was said.
    parts = [when, *marks, source] if source.endswith(" said") else [when, source, *marks]
    return ", ".join(parts)


def source_of(trace: Trace, user_name: str | None = None) -> str:
    """Who said it, or what it comes from."""
    if trace.role == "note":
        return "a note"
    if trace.source == "user_statement":
        if trace.scope.kind in ("persona", "organization"):
            return "someone said"
        return f"{spoken_name(user_name) or 'the user'} said"
    if trace.role == "assistant" and trace.source == "agent_inference":
        return "you said"
    return SOURCES[trace.source]


def spoken_name(name: str | None) -> str:
    """A speaker's name as a line can hold it: on one line, short, and without brackets."""
    words = " ".join((name or "").split())
    plain = "".join(sign for sign in words if sign not in "[](){}")
    return plain[:NAME_CHARS].strip()


def is_gist(trace: Trace) -> bool:
    """Whether only a memory's gist is left."""
    return trace.role == "gist" or NAME in trace.mechanisms
