"""An embedding model that hangs must not hold up every turn: it is left alone for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from ...personas.errors import GMIError
from .answers import checked
from .embedder import Embedder, EmbedderDownError, EmbedderError, EmbedKind, Vectors

SECONDS: Mapping[EmbedKind, float] = {"query": 6.0, "passage": 120.0}
"""Seconds after which a call is given up, a little more than the adapters' own."""

SLOW = 2.0
"""Seconds from which on a model that did not answer is taken to hang. One that refuses at once
costs nobody time, and is asked again."""

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 240.0
"""Seconds for which a model that hangs is left alone: twice as long each time in a row."""


class WatchedEmbedder:
    """Another embedder, whose answers are checked and whose hanging is noticed.

    While the model is left alone, calls fail at once, so that words alone are used. Afterwards one
    call at a time tries it again; whoever calls meanwhile does not wait.

    Args:
        embedder: The model.
        clock: Monotonic seconds.
        seconds: After which a call is given up, by kind.
    """

    def __init__(
        self,
        embedder: Embedder,
        clock: Callable[[], float] = time.monotonic,
        seconds: Mapping[EmbedKind, float] = SECONDS,
    ) -> None:
        self._embedder = embedder
        self._clock = clock
        self._seconds = seconds
        self._dimension: int | None = None
        self._pause = FIRST_PAUSE
        self._until: float | None = None
        self._trying = False

    def __repr__(self) -> str:
        return f"WatchedEmbedder({self._embedder!r})"

    @property
    def model(self) -> str:
        """``provider:model``."""
        return self._embedder.model

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; ``None`` before the first answer of a model that is not known."""
        return self._dimension or self._embedder.dimension

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        """See :class:`~.embedder.Embedder`.

        Raises:
            EmbedderDownError: The model cannot be reached now, or is left alone.
            EmbedderError: The model refused, failed, or answered what cannot be used.
        """
        tries = self._until is not None
        if self._until is not None:
            left = self._until - self._clock()
            if left > 0 or self._trying:
                raise EmbedderDownError(
                    f"{self.model} hung and is left alone for a while",
                    details={"retry_after": max(left, 1.0)},
                )
            self._trying = True
        try:
            return await self._ask(texts, kind)
        finally:
            if tries:
                self._trying = False

    async def _ask(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        began, known = self._clock(), self._until
        try:
            async with asyncio.timeout(self._seconds[kind]):
                found = await self._embedder.embed(texts, kind)
            # A size that changes under one name is another model.
            vectors = checked(found, len(texts), self.model, self.dimension) if texts else found
        except EmbedderDownError:
            self._failed(known, hung=self._clock() - began >= SLOW)
            raise
        except TimeoutError as error:
            self._failed(known, hung=True)
            raise EmbedderDownError(
                f"{self.model} did not answer within {self._seconds[kind]:g} s"
            ) from error
        except GMIError:
            self._failed(known, hung=False)
            raise
        except Exception as error:
            # A host's own code: whatever it raises, what was said is kept without a vector.
            self._failed(known, hung=False)
            raise EmbedderError(f"{self.model} failed: {type(error).__name__}: {error}") from error
        self._until, self._pause = None, FIRST_PAUSE
        if texts:
            self._dimension = vectors.shape[1]
        return vectors

    def _failed(self, known: float | None, *, hung: bool) -> None:
        if self._until != known:
            # Calls that hung together are one failure, and what came meanwhile is newer.
            return
        if not hung:
            self._until = None
            return
        self._until = self._clock() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
