"""Embedding models behind one seam: local, OpenAI's format, Gemini, Ollama, or none."""

from .embedder import Embedder, EmbedderDownError, EmbedderError, EmbedKind, Vectors
from .local import LOCAL_MODEL, LocalEmbedder
from .registry import EmbedderRegistry
from .served import GeminiEmbedder, OllamaEmbedder, OpenAIEmbedder

__all__ = [
    "LOCAL_MODEL",
    "EmbedKind",
    "Embedder",
    "EmbedderDownError",
    "EmbedderError",
    "EmbedderRegistry",
    "GeminiEmbedder",
    "LocalEmbedder",
    "OllamaEmbedder",
    "OpenAIEmbedder",
    "Vectors",
]
