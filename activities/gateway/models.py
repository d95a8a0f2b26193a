"""What is known of the models: how much they read and write, what they can, what they cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from ...personas.messages import ImagePart, Usage
from .failures import ProviderFailure
from .provider import ModelRequest

DEFAULT_WINDOW = 8192
"""Context window in tokens that is assumed of an unknown model."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model can do.

    Attributes:
        window: Context window in tokens.
        max_output: Most tokens of one answer, or ``None`` when unknown.
        images: Whether it takes images; ``None`` when unknown.
        tools: Whether it calls tools; ``None`` when unknown.
    """

    window: int = DEFAULT_WINDOW
    max_output: int | None = None
    images: bool | None = None
    tools: bool | None = None


# First match wins. A gateway's prefix ("anthropic/claude-…") and a tag (":free") are cut off first.
_FAMILIES: tuple[tuple[re.Pattern[str], ModelInfo], ...] = tuple(
    (re.compile(pattern), ModelInfo(window, output, images, tools))
    for pattern, window, output, images, tools in (
        (r"offline", 131_072, None, False, True),
        (r"gpt-5", 400_000, 128_000, True, True),
        (r"gpt-4\.1", 1_047_576, 32_768, True, True),
        (r"(?:chat)?gpt-4o", 128_000, 16_384, True, True),
        (r"gpt-4-turbo", 128_000, 4_096, True, True),
        (r"gpt-4", 8_192, 8_192, False, True),
        (r"gpt-3\.5", 16_385, 4_096, False, True),
        (r"gpt-oss", 131_072, None, False, True),
        (r"o3-mini|o1-mini", 128_000, 65_536, False, True),
        (r"o[134](?:-|$)", 200_000, 100_000, True, True),
        (r"claude-3-5-haiku|claude-3-5-sonnet", 200_000, 8_192, True, True),
        (r"claude-3-7-sonnet", 200_000, 64_000, True, True),
        (r"claude-3-", 200_000, 4_096, True, True),
        (r"claude-opus-4(?:-[01])?(?:-2\d{7})?$", 200_000, 32_000, True, True),
        (r"claude-", 200_000, 64_000, True, True),
        (r"gemini-1\.5-pro", 2_097_152, 8_192, True, True),
        (r"gemini-(?:1\.5|2\.0)", 1_048_576, 8_192, True, True),
        (r"gemini-", 1_048_576, 65_536, True, True),
        (r"gemma-?3", 131_072, 8_192, True, False),
        (r"llama-?3\.2.*vision|llama-?4", 131_072, None, True, True),
        (r"(?:meta-)?llama-?3\.[123]", 131_072, None, False, True),
        (r"(?:meta-)?llama-?3", 8_192, None, False, False),
        (r"pixtral|mistral-(?:medium|small)", 131_072, None, True, True),
        (r"mistral-large|ministral", 131_072, None, False, True),
        (r"codestral|mistral|mixtral", 32_768, None, False, True),
        (r"deepseek-", 131_072, 8_192, False, True),
        (r"grok-4", 256_000, None, True, True),
        (r"grok-", 131_072, None, False, True),
        (r"qwen", 32_768, None, False, True),
    )
)

# Their servers cut a longer prompt without a word, whatever the model could read.
_SMALL_WINDOW_SERVERS = frozenset({"ollama"})

_PRICE_PROVIDERS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "openrouter": "openrouter",
    "groq": "groq",
    "together": "together",
    "xai": "x-ai",
    "mistral": "mistral",
    "deepseek": "deepseek",
}


def model_info(model: str, provider: str = "") -> ModelInfo:
    """What is known of a model; an unknown one has a window of 8,192 tokens.

    Args:
        model: The model's id, without the provider's prefix.
        provider: The provider's name.
    """
    name = model.lower().rsplit("/", 1)[-1]
    for pattern, info in _FAMILIES:
        if pattern.match(name):
            if provider in _SMALL_WINDOW_SERVERS and info.window > DEFAULT_WINDOW:
                return ModelInfo(DEFAULT_WINDOW, info.max_output, info.images, info.tools)
            return info
    return ModelInfo()


def ensure_supported(request: ModelRequest, provider: str) -> None:
    """Check that the model is not known to lack what the request needs.

    Args:
        request: The call.
        provider: The provider's name.

    Raises:
        ProviderFailure: Of kind ``unsupported``: the prompt holds images, or tools are offered,
            and the model takes none. The next hop may be another model.
    """
    info = model_info(request.model, provider)
    has_images = any(
        isinstance(part, ImagePart)
        for message in request.messages
        if isinstance(message.content, list)
        for part in message.content
    )
    for needed, able, what, code in (
        (has_images, info.images, "images", "IMAGE_UNSUPPORTED"),
        (bool(request.tools), info.tools, "tools", "TOOLS_UNSUPPORTED"),
    ):
        if needed and able is False:
            raise ProviderFailure(
                f"{provider}: the model {request.model!r} takes no {what}; choose one that does",
                kind="unsupported",
                provider=provider,
                code=code,
            )


def price(model: str, provider: str, usage: Usage) -> Usage:
    """The usage with its cost in USD, where that is known.

    A cost that the provider reported itself stands. Otherwise the price list of the optional
    package ``genai-prices`` is asked; without it, or without a price in it, the cost is ``None``.

    Args:
        model: The model's id, without the provider's prefix.
        provider: The provider's name.
        usage: The tokens.
    """
    if usage.cost_usd is not None:
        return usage
    if provider == "offline":
        return usage.model_copy(update={"cost_usd": 0.0})
    cost = _listed_cost(model, provider, usage)
    return usage if cost is None else usage.model_copy(update={"cost_usd": float(cost)})


def load_prices() -> None:
    """Load the price list, if there is one, so that the first bill does not wait for it.

    It takes a tenth of a second and more, so call it in a thread, before any step is served.
    """
    _listed_cost("any", "openai", Usage())


def _listed_cost(model: str, provider: str, usage: Usage) -> Decimal | None:
    price_provider = _PRICE_PROVIDERS.get(provider)
    if price_provider is None:
        return None
    # An optional extra, and slow to load: only asked for when a price is.
    try:
        import genai_prices
    except ImportError:
        return None
    tokens = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        return genai_prices.calc_price(tokens, model, provider_id=price_provider).total_price
    except (LookupError, ValueError):
        return None
