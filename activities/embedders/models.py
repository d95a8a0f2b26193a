"""Embedding models that are known by name, and what each wants to be told.

What is not here works too: its dimension is learned from its first answer.
"""

from __future__ import annotations

from .embedder import EmbedKind

_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
    "gemini-embedding-2": 3072,
    "gemini-embedding-2-preview": 3072,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "all-minilm": 384,
    "bge-m3": 1024,
}

_PREFIXES: tuple[tuple[str, dict[EmbedKind, str]], ...] = (
    ("nomic-embed-text", {"query": "search_query: ", "passage": "search_document: "}),
    (
        "mxbai-embed-large",
        {"query": "Represent this sentence for searching relevant passages: ", "passage": ""},
    ),
    (
        "gemini-embedding-2",
        {"query": "task: search result | query: ", "passage": "title: none | text: "},
    ),
)

MAX_CHARACTERS = 6000
"""Of a text that are embedded: within the context of every model above, in every script."""


def known_dimension(model: str) -> int | None:
    """Numbers in a vector of a model, by its name without the provider and with or without tag."""
    name = model.rsplit("/", 1)[-1]
    return _DIMENSIONS.get(name) or _DIMENSIONS.get(name.partition(":")[0])


def prepared(text: str, model: str, kind: EmbedKind) -> str:
    """A text as a model wants it: with the model's own mark of what the text is, and cut."""
    name = model.rsplit("/", 1)[-1]
    for start, prefixes in _PREFIXES:
        if name.startswith(start):
            return prefixes[kind] + text[:MAX_CHARACTERS]
    return text[:MAX_CHARACTERS]
