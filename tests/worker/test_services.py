"""How a worker finds its tools in the modules that its settings name."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gmi.activities.embedders import EmbedKind, Vectors
from gmi.personas.errors import ConfigurationError
from gmi.personas.memory import MemorySettings
from gmi.personas.sentiment import Sentiment
from gmi.worker import GMIPlugin, Settings
from gmi.worker.services import Services

REMOTE = """
from gmi.activities.tools import remote_tool

{name} = remote_tool("{name}", "Far.", {{"type": "object", "properties": {{}}}}, "elsewhere")
"""


def settings(directory: Path, *modules: str) -> Settings:
    return Settings(database_url=f"sqlite:///{directory / 'gmi.db'}", tools=modules)


async def names(services: Services) -> list[str]:
    async with services.running():
        return services.tools.names()


async def test_two_modules_with_one_tool_name_are_both_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "first_shop.py").write_text(REMOTE.format(name="fetch"))
    (tmp_path / "second_shop.py").write_text(REMOTE.format(name="fetch"))
    with pytest.raises(ConfigurationError) as raised:
        Services(settings(tmp_path, "first_shop", "second_shop"))
    assert "first_shop" in raised.value.message
    assert "second_shop" in raised.value.message


async def test_a_tool_that_a_module_imports_from_another_is_one_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "origin_shop.py").write_text(REMOTE.format(name="deliver"))
    (tmp_path / "other_shop.py").write_text(
        "from origin_shop import deliver\n" + REMOTE.format(name="collect")
    )
    found = await names(Services(settings(tmp_path, "origin_shop", "other_shop")))
    assert [name for name in found if name in ("deliver", "collect")] == ["collect", "deliver"]


async def test_the_price_list_is_loaded_before_the_worker_polls(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices", reason="the optional extra `prices` is not installed")
    program = f"""
import asyncio, sys
from gmi.worker import Settings
from gmi.worker.services import Services

async def main():
    services = Services(Settings(database_url="sqlite:///{tmp_path / "gmi.db"}"))
    assert "genai_prices" not in sys.modules
    async with services.running():
        assert "genai_prices" in sys.modules

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await process.wait() == 0


class Constant:
    """An embedder of the host's own."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.dimension = 2

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        return np.array([[1.0, 0.0]] * len(texts), dtype=np.float32)


class Cheerful:
    """A scorer of the host's own."""

    async def score(self, text: str, language: str) -> Sentiment:
        return Sentiment.of(0.9, 0.9, language=language)


async def test_a_hosts_scorers_and_embedders_serve_its_worker(tmp_path: Path) -> None:
    mine = Constant("mine:words")
    services = Services(
        replace(settings(tmp_path), embedding_model="mine:words"),
        scorers={"de-AT": Cheerful()},
        embedders={"mine:words": mine},
    )
    async with services.running():
        assert services.embedders.get() is mine
        assert services.memories.engine(MemorySettings()).embedder is not None
        assert (await services.scorers.score("Na ja", "de")).polarity == "positive"
        assert (await services.scorers.score("I hate it", "en")).polarity == "negative"


def test_an_embedder_under_another_name_than_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="mine:words"):
        Services(settings(tmp_path), embedders={"yours:words": Constant("mine:words")})


async def test_the_plugin_hands_on_what_a_host_brings(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="mine:words"):
        GMIPlugin(
            settings(tmp_path), embedders={"yours:words": Constant("mine:words")}
        ).configure_worker({})
