import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gmi.personas import (
    BUILT_IN_PERSONAS,
    Persona,
    PersonaLoader,
    StrictConfig,
    load_catalog,
    load_persona,
)
from gmi.personas.errors import (
    ConfigurationError,
    PermissionDeniedError,
    PersonaInvalidError,
    PersonaNotFoundError,
)


def raw(persona_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": persona_id,
        "name": persona_id.upper(),
        "description": "d",
        "version": "1.0.0",
        "baseSystemPrompt": "x",
        **fields,
    }


def write(directory: Path, name: str, data: Any) -> Path:
    path = directory / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


class HostLoader:
    def __init__(self, personas: Sequence[Persona | Mapping[str, Any]]) -> None:
        self.personas = personas

    async def load(self) -> Sequence[Persona | Mapping[str, Any]]:
        return self.personas


async def test_without_a_source_the_built_in_personas_are_served() -> None:
    catalog = await load_catalog()
    assert len(catalog) == 5
    assert catalog.get().id == catalog.default_id == "v_researcher"


async def test_a_directory_gives_one_persona_a_file(tmp_path: Path) -> None:
    write(tmp_path, "b.json", raw("b", toolIds=["t"]))
    write(tmp_path, "a.json", raw("a"))
    write(tmp_path, "notes.txt", "not a persona")
    catalog = await load_catalog(directory=tmp_path, default_id="a")
    assert catalog.ids == ["a", "b"]
    assert catalog.get("b").tool_ids == ["t"]
    assert catalog.get().id == "a"
    assert "b" in catalog


async def test_a_list_takes_personas_and_data() -> None:
    catalog = await load_catalog(personas=[BUILT_IN_PERSONAS[1], raw("a")])
    assert catalog.ids == ["a", "nerf_generalist"]
    assert catalog.get("nerf_generalist") is BUILT_IN_PERSONAS[1]


async def test_a_host_can_bring_a_loader() -> None:
    loader = HostLoader([raw("a")])
    assert isinstance(loader, PersonaLoader)
    assert (await load_catalog(loader=loader)).ids == ["a"]


async def test_an_empty_list_is_a_source_without_personas() -> None:
    catalog = await load_catalog(personas=[])
    with pytest.raises(PersonaNotFoundError, match="default persona 'v_researcher'"):
        catalog.get()


async def test_an_unknown_id_names_the_known_ones() -> None:
    catalog = await load_catalog(personas=[raw("b"), raw("a")])
    with pytest.raises(PersonaNotFoundError) as caught:
        catalog.get("c")
    assert caught.value.code == "PERSONA_NOT_FOUND"
    assert caught.value.details["known"] == ["a", "b"]
    assert "'c'" in str(caught.value)


async def test_two_sources_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await load_catalog(directory=tmp_path, personas=[])
    assert caught.value.details == {"given": ["directory", "personas"]}
    with pytest.raises(ConfigurationError):
        await load_catalog(personas=[], loader=HostLoader([]))
    with pytest.raises(ConfigurationError):
        await load_catalog(directory=tmp_path, loader=HostLoader([]))


async def test_a_directory_that_does_not_exist_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        await load_catalog(directory=tmp_path / "nowhere")


async def test_every_broken_file_is_named_with_its_issues(tmp_path: Path) -> None:
    write(tmp_path, "good.json", raw("good"))
    no_version = write(tmp_path, "old.json", {**raw("old"), "version": "1"})
    no_json = write(tmp_path, "cut.json", '{"id": "cu')
    a_list = write(tmp_path, "list.json", [raw("l")])
    with pytest.raises(PersonaInvalidError) as caught:
        await load_catalog(directory=tmp_path)
    issues = caught.value.details["issues"]
    assert {(issue["source"], issue["code"]) for issue in issues} == {
        (str(no_version), "invalid_semver"),
        (str(no_json), "invalid_json"),
        (str(a_list), "invalid_json"),
    }
    for path in (no_version, no_json, a_list):
        assert str(path) in str(caught.value)
    assert "good.json" not in str(caught.value)


async def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "binary.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PersonaInvalidError, match=r"binary\.json"):
        await load_catalog(directory=tmp_path)


async def test_an_id_that_two_files_use_is_refused(tmp_path: Path) -> None:
    first = write(tmp_path, "a.json", raw("same"))
    second = write(tmp_path, "b.json", raw("same"))
    with pytest.raises(PersonaInvalidError) as caught:
        await load_catalog(directory=tmp_path)
    (issue,) = caught.value.details["issues"]
    assert (issue["code"], issue["source"]) == ("duplicate_persona_id", str(second))
    assert str(first) in issue["message"]


async def test_warnings_do_not_stop_the_loading_and_are_reported() -> None:
    catalog = await load_catalog(personas=[raw("a", voiceConfig={})])
    codes = [issue.code for issue in catalog.reports["a"].issues]
    assert codes == ["voice_config_without_audio_output", "missing_cost_strategy"]


async def test_tools_that_do_not_exist_stop_the_loading() -> None:
    with pytest.raises(PersonaInvalidError, match="unknown_tool_id"):
        await load_catalog(personas=[raw("a", toolIds=["t"])], known_tools={"u"})


async def test_strict_validation_blocks_the_activation() -> None:
    strict = StrictConfig(
        enabled=True, treat_warnings_as_errors=["voice_config_without_audio_output"]
    )
    catalog = await load_catalog(personas=[raw("a", voiceConfig={}), raw("b")], strict=strict)
    assert catalog.get("b").id == "b"
    with pytest.raises(PermissionDeniedError) as caught:
        catalog.get("a")
    assert caught.value.details["reasons"] == ["voice_config_without_audio_output"]


async def test_strict_validation_can_block_the_loading() -> None:
    strict = StrictConfig(
        enabled=True,
        mode="load_block",
        treat_warnings_as_errors=["voice_config_without_audio_output"],
    )
    with pytest.raises(PersonaInvalidError, match="voice_config_without_audio_output"):
        await load_catalog(personas=[raw("a", voiceConfig={})], strict=strict)


def test_one_persona_can_be_loaded_by_itself() -> None:
    assert load_persona(raw("a")).id == "a"
    with pytest.raises(PersonaInvalidError, match=r"of the request.*missing_required_field"):
        load_persona({"id": "a"}, source="persona of the request")
