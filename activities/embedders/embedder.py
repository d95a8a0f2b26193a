"""The seam to the embedding models: texts in, one vector for each out.

A vector belongs to the model that made it. ``Embedder.model`` is kept beside every vector, and
vectors of two models are never compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ...personas.errors import GMIError

EmbedKind = Literal["query", "passage"]
Vectors = NDArray[np.float32]


class EmbedderError(GMIError):
    """An embedding model refused, or answered what cannot be used; asking again does not help."""

    default_code = "EMBEDDER_ERROR"


class EmbedderDownError(EmbedderError):
    """An embedding model cannot be reached or is overloaded; the same call may succeed later.

    ``details["retry_after"]`` holds the seconds that it asks to wait, where it said so.
    """

    default_code = "EMBEDDER_DOWN"
    retryable = True


class Embedder(Protocol):
    """A model that turns texts into vectors."""

    @property
    def model(self) -> str:
        """``provider:model``, as it is kept beside each vector."""
        ...

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; ``None`` until the first answer when the model is not known."""
        ...

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        """One vector for each text, of shape ``(len(texts), dimension)`` and length 1.

        Args:
            texts: The texts, none of them empty; any number of them.
            kind: What they are: some models embed a question otherwise than what answers it.

        Raises:
            EmbedderDownError: The model cannot be reached now.
            EmbedderError: The model refused, or its answer has another size than expected.
        """
        ...
