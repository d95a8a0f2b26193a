"""Which providers there are, and how one is built from settings.

Settings are handed in as a mapping: the environment is read at the edge, not here. A key comes
from the settings, or from a name on the worker's allow-list; nobody can hand in a key itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from ...personas.errors import ConfigurationError, CredentialRefusedError
from .anthropic import AnthropicProvider
from .failures import ProviderFailure
from .gemini import GeminiProvider
from .http import IDLE_TIMEOUT
from .offline import OfflineProvider
from .openai import OpenAIProvider
from .openai_body import MISTRAL, OPENAI, OPENROUTER, PLAIN, Dialect
from .provider import Provider

OFFLINE_MODEL = "offline:offline"


@dataclass(frozen=True, slots=True)
class KnownProvider:
    """How a provider is reached.

    Attributes:
        wire: Wire family: ``openai``, ``anthropic``, ``gemini`` or ``offline``.
        base_url: Where it is; ``None`` when a setting has to say it.
        key_settings: Settings that may hold the key; the first one set counts.
        url_settings: Settings that may hold another base URL; the first one set counts.
        needs_key: Whether it can be called only with a key.
        dialect: How it differs from the plainest Chat Completions.
        usual_model: The model that is asked where nobody chose one.
    """

    wire: str
    base_url: str | None
    key_settings: tuple[str, ...] = ()
    url_settings: tuple[str, ...] = ()
    needs_key: bool = True
    dialect: Dialect = PLAIN
    usual_model: str | None = None


KNOWN_PROVIDERS: Mapping[str, KnownProvider] = {
    "openai": KnownProvider(
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL",),
        dialect=OPENAI,
        usual_model="gpt-4.1-mini",
    ),
    "anthropic": KnownProvider(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
        usual_model="claude-sonnet-4-5",
    ),
    "gemini": KnownProvider(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("GEMINI_BASE_URL",),
        usual_model="gemini-2.5-flash",
    ),
    "ollama": KnownProvider(
        "openai",
        "http://127.0.0.1:11434/v1",
        ("OLLAMA_API_KEY",),
        ("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        needs_key=False,
        usual_model="llama3.2",
    ),
    "openrouter": KnownProvider(
        "openai",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        ("OPENROUTER_BASE_URL",),
        dialect=OPENROUTER,
        usual_model="openai/gpt-4.1-mini",
    ),
    "groq": KnownProvider(
        "openai", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), ("GROQ_BASE_URL",)
    ),
    "together": KnownProvider(
        "openai", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), ("TOGETHER_BASE_URL",)
    ),
    "xai": KnownProvider("openai", "https://api.x.ai/v1", ("XAI_API_KEY",), ("XAI_BASE_URL",)),
    "mistral": KnownProvider(
        "openai",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        ("MISTRAL_BASE_URL",),
        dialect=MISTRAL,
    ),
    "deepseek": KnownProvider(
        "openai", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), ("DEEPSEEK_BASE_URL",)
    ),
    "vllm": KnownProvider(
        "openai", "http://127.0.0.1:8000/v1", ("VLLM_API_KEY",), ("VLLM_BASE_URL",), needs_key=False
    ),
    "openai-compatible": KnownProvider(
        "openai",
        None,
        ("OPENAI_COMPATIBLE_API_KEY",),
        ("OPENAI_COMPATIBLE_BASE_URL",),
        needs_key=False,
    ),
    "offline": KnownProvider("offline", None, needs_key=False),
}

_ALIASES = {"google": "gemini", "grok": "xai"}

_DEFAULT_PROVIDERS = (
    ("OPENAI_API_KEY", "openai"),
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("GEMINI_API_KEY", "gemini"),
    ("GOOGLE_API_KEY", "gemini"),
    ("OLLAMA_BASE_URL", "ollama"),
)


def parse_model(model: str, known: Iterable[str] = KNOWN_PROVIDERS) -> tuple[str, str]:
    """Provider and model of ``provider:model`` or ``provider/model``.

    The first of the two signs divides; a model's own name may hold both
    (``ollama:llama3:8b``, ``openrouter/anthropic/claude-sonnet-4-5``).

    Args:
        model: The model string; ``offline`` alone is accepted.
        known: Names of the providers that there are.

    Raises:
        ConfigurationError: It has another form, or names an unknown provider.
    """
    names = list(known)
    cut = next((i for i, sign in enumerate(model) if sign in ":/"), None)
    if cut is None and model.strip().lower() == "offline":
        return "offline", "offline"
    if cut is None or not model[cut + 1 :].strip():
        raise ConfigurationError(
            f"The model {model!r} names no provider; write provider:model, for example "
            "openai:gpt-4.1-mini"
        )
    provider = model[:cut].strip().lower()
    provider = _ALIASES.get(provider, provider)
    if provider not in names:
        raise ConfigurationError(
            f"The model {model!r} names the unknown provider {provider!r}; known are "
            f"{', '.join(names)}",
            details={"known": names},
        )
    return provider, model[cut + 1 :].strip()


def default_model(settings: Mapping[str, str]) -> str:
    """The model for someone who chose none: that of the first key set, else the offline one."""
    for setting, provider in _DEFAULT_PROVIDERS:
        if settings.get(setting, "").strip():
            return usual_model(provider)
    return OFFLINE_MODEL


def usual_model(provider: str) -> str:
    """``provider:model`` of the model that a provider is asked for where nobody chose one."""
    return f"{provider}:{KNOWN_PROVIDERS[provider].usual_model}"


class ProviderRegistry:
    """Builds the adapters, each once.

    Args:
        client: Sends every adapter's requests; the caller closes it.
        settings: Keys and base URLs by their names, such as ``OPENAI_API_KEY``.
        credentials: The allow-list: values that ``env:NAME`` may stand for, by name.
        idle_timeout: Seconds without a byte after which a call counts as stalled.
        offline_delay: Seconds between two words of the offline model.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        settings: Mapping[str, str],
        *,
        credentials: Mapping[str, str] | None = None,
        idle_timeout: float = IDLE_TIMEOUT,
        offline_delay: float = 0.0,
    ) -> None:
        self._client = client
        self._settings = dict(settings)
        self._credentials = dict(credentials or {})
        self._idle_timeout = idle_timeout
        self._offline_delay = offline_delay
        self._own: dict[str, Provider] = {}
        self._built: dict[tuple[str, str | None], Provider] = {}

    def __repr__(self) -> str:
        return f"ProviderRegistry(providers={self.names()!r})"

    def names(self) -> list[str]:
        """Names of the providers that a model string may name."""
        return [*KNOWN_PROVIDERS, *(n for n in self._own if n not in KNOWN_PROVIDERS)]

    def register(self, name: str, provider: Provider) -> None:
        """Add a provider of one's own, or put one in the place of a known one."""
        self._own[name] = provider

    def parse(self, model: str) -> tuple[str, str]:
        """Like :func:`parse_model`, with the registered providers known too."""
        return parse_model(model, self.names())

    def get(self, name: str, credential: str | None = None) -> Provider:
        """The adapter of a provider.

        Args:
            name: The provider's name.
            credential: ``env:NAME`` to use a key from the allow-list in place of the settings'.

        Raises:
            ConfigurationError: The provider is unknown, or its base URL is unusable.
            CredentialRefusedError: The credential is no name, or not on the allow-list.
            ProviderFailure: Of kind ``configuration``: the provider's key or URL is not set.
        """
        if name in self._own:
            return self._own[name]
        if name not in KNOWN_PROVIDERS:
            raise ConfigurationError(
                f"The provider {name!r} is unknown; known are {', '.join(self.names())}",
                details={"known": self.names()},
            )
        place = (name, credential)
        if place not in self._built:
            self._built[place] = self._build(name, KNOWN_PROVIDERS[name], credential)
        return self._built[place]

    def reach(self, name: str) -> tuple[str | None, str]:
        """Key and base URL of a known provider, for what is asked of it beside completions.

        Raises:
            ConfigurationError: Its base URL is unusable.
            ProviderFailure: Of kind ``configuration``: its key or URL is not set.
        """
        known = KNOWN_PROVIDERS[name]
        return self._key(name, known, None), self._base_url(name, known)

    def _build(self, name: str, known: KnownProvider, credential: str | None) -> Provider:
        if known.wire == "offline":
            return OfflineProvider(delay=self._offline_delay)
        key = self._key(name, known, credential)
        base_url = self._base_url(name, known)
        if known.wire == "anthropic":
            return AnthropicProvider(
                self._client,
                api_key=key,
                base_url=base_url,
                name=name,
                idle_timeout=self._idle_timeout,
            )
        if known.wire == "gemini":
            return GeminiProvider(
                self._client,
                api_key=key,
                base_url=base_url,
                name=name,
                idle_timeout=self._idle_timeout,
            )
        # Whatever else answers under OPENAI_BASE_URL speaks the plain format.
        dialect = known.dialect if name != "openai" or _is_openai(base_url) else PLAIN
        return OpenAIProvider(
            self._client,
            api_key=key,
            base_url=base_url,
            name=name,
            dialect=dialect,
            idle_timeout=self._idle_timeout,
        )

    def _key(self, name: str, known: KnownProvider, credential: str | None) -> str | None:
        if credential is not None:
            return self._usable(name, self._credential(name, credential), credential)
        for setting in known.key_settings:
            value = self._settings.get(setting, "").strip()
            if value:
                return self._usable(name, value, setting)
        if known.needs_key:
            raise ProviderFailure(
                f"{name} has no key; set {' or '.join(known.key_settings)}",
                kind="configuration",
                provider=name,
            )
        return None

    def _credential(self, name: str, credential: str) -> str:
        scheme, _, wanted = credential.partition(":")
        if scheme != "env" or not wanted:
            raise CredentialRefusedError(
                f"The credential for {name} is no reference; give it as env:NAME, never as the "
                "key itself"
            )
        if wanted not in self._credentials:
            raise CredentialRefusedError(
                f"The credential env:{wanted} for {name} is not on this worker's allow-list",
                details={"allowed": sorted(self._credentials)},
            )
        return self._credentials[wanted].strip()

    def _usable(self, name: str, key: str, source: str) -> str:
        # Checked here because the transport would quote the whole header in its complaint.
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise ProviderFailure(
                f"the key for {name} in {source} is empty or holds characters that no key has; "
                "set it again",
                kind="configuration",
                provider=name,
            )
        return key

    def _base_url(self, name: str, known: KnownProvider) -> str:
        for setting in known.url_settings:
            value = self._settings.get(setting, "").strip()
            if value:
                return _checked_url(name, setting, value)
        if known.base_url is None:
            raise ProviderFailure(
                f"{name} has no base URL; set {' or '.join(known.url_settings)}",
                kind="configuration",
                provider=name,
            )
        return known.base_url


def _checked_url(name: str, setting: str, value: str) -> str:
    url = value if "://" in value else f"http://{value}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{setting} is no http or https URL; give one for {name}")
    if parts.username or parts.password:
        raise ConfigurationError(
            f"{setting} holds a user name or password; give {name}'s key in a setting of its own"
        )
    url = url.rstrip("/")
    if name == "ollama":
        # Ollama's own setting names the address that its server listens on.
        url = url.replace("://0.0.0.0", "://127.0.0.1")
        if not parts.path.strip("/"):
            url += "/v1"
    return url


def _is_openai(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host == "openai.com" or host.endswith((".openai.com", ".openai.azure.com"))
