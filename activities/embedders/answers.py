"""What every adapter over HTTP shares: post, fail typed, and check the vectors that came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import httpx
import numpy as np

from ..gateway.failures import ProviderFailure, classify
from ..gateway.http import Endpoint
from .embedder import EmbedderDownError, EmbedderError, EmbedKind, Vectors

TIMEOUTS: Mapping[EmbedKind, float] = {"query": 5.0, "passage": 60.0}
"""Seconds that one request may take. A query holds up a turn; passages are embedded after it."""

_CONNECT_TIMEOUT = 3.0


async def post(
    client: httpx.AsyncClient,
    endpoint: Endpoint,
    path: str,
    body: Mapping[str, object],
    kind: EmbedKind,
) -> Mapping[str, object]:
    """Post a JSON body and return the JSON object that answers it.

    Raises:
        EmbedderDownError: The provider is not reached, or cannot answer now.
        EmbedderError: The provider refused, or answered no JSON object.
    """
    seconds = TIMEOUTS[kind]
    failure: ProviderFailure
    try:
        response = await client.post(
            endpoint.base_url + path,
            json=body,
            headers=endpoint.headers,
            timeout=httpx.Timeout(seconds, connect=min(seconds, _CONNECT_TIMEOUT)),
        )
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        failure = classify(provider=endpoint.provider, error=error, secrets=endpoint.secrets)
    else:
        try:
            answer = response.json()
        except ValueError:
            answer = response.text
        if response.is_success and isinstance(answer, dict):
            return answer
        if response.is_success:
            kind_of = response.headers.get("content-type", "nothing")
            raise EmbedderError(
                f"{endpoint.provider}: answered {kind_of} where vectors were asked for; check the "
                "base URL"
            )
        failure = classify(
            provider=endpoint.provider,
            status=response.status_code,
            headers=response.headers,
            body=answer,
            secrets=endpoint.secrets,
        )
    # Raised here, without the transport's error, which holds the request with its key.
    raise as_error(failure)


def as_error(failure: ProviderFailure) -> EmbedderError:
    """A provider's failure as this seam tells it."""
    kind = EmbedderDownError if failure.same_hop_retryable else EmbedderError
    return kind(failure.message, details=failure.as_details())


def checked(found: object, count: int, model: str, dimension: int | None) -> Vectors:
    """The vectors of an answer, at length 1.

    Args:
        found: What stands in the answer: a list of lists of numbers.
        count: How many texts were sent.
        model: ``provider:model``, for the message.
        dimension: Numbers that a vector of it has, where that is known.

    Raises:
        EmbedderError: There are more or fewer vectors, or one of another size or without length.
    """
    try:
        vectors = np.asarray(found, np.float32)
    except (TypeError, ValueError):
        vectors = np.zeros((0, 0), np.float32)
    if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] == 0:
        raise EmbedderError(f"{model} did not answer one vector for each of {count} texts")
    if dimension is not None and vectors.shape[1] != dimension:
        raise EmbedderError(
            f"{model} answered vectors of {vectors.shape[1]} numbers where its vectors have "
            f"{dimension}; another model answers under this name"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise EmbedderError(f"{model} answered a vector without a length")
    scaled: Vectors = vectors / lengths
    return scaled


def batches(texts: Sequence[str], most: int, characters: int = 200_000) -> list[list[str]]:
    """Texts in parts that one request may carry, in their order."""
    found: list[list[str]] = []
    room = 0
    for text in texts:
        if not found or len(found[-1]) == most or len(text) > room:
            found.append([])
            room = characters
        found[-1].append(text)
        room -= len(text)
    return found
