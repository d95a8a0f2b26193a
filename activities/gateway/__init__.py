"""The gateway to the model providers: adapters, typed failures, circuits, prices."""

from .anthropic import AnthropicProvider
from .circuits import CircuitPolicy, CircuitRegistry, CircuitStats, policy_of
from .failures import FailureKind, ProviderFailure, classify
from .gemini import GeminiProvider
from .models import ModelInfo, ensure_supported, model_info, price
from .offline import OfflineProvider
from .openai import OpenAIProvider
from .openai_body import Dialect
from .provider import (
    Finished,
    ModelRequest,
    Provider,
    ProviderEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from .registry import (
    KNOWN_PROVIDERS,
    KnownProvider,
    ProviderRegistry,
    default_model,
    parse_model,
)

__all__ = [
    "KNOWN_PROVIDERS",
    "AnthropicProvider",
    "CircuitPolicy",
    "CircuitRegistry",
    "CircuitStats",
    "Dialect",
    "FailureKind",
    "Finished",
    "GeminiProvider",
    "KnownProvider",
    "ModelInfo",
    "ModelRequest",
    "OfflineProvider",
    "OpenAIProvider",
    "Provider",
    "ProviderEvent",
    "ProviderFailure",
    "ProviderRegistry",
    "TextDelta",
    "ToolCallDelta",
    "UsageReport",
    "classify",
    "default_model",
    "ensure_supported",
    "model_info",
    "parse_model",
    "policy_of",
    "price",
]
