import pytest

from gmi.personas import (
    BUILT_IN_PERSONAS,
    DEFAULT_PERSONA_ID,
    Persona,
    get_built_in_persona,
    personality_section,
    validate_persona,
    validate_personas,
)
from gmi.personas.errors import PersonaNotFoundError


def test_the_five_are_there() -> None:
    assert {persona.id for persona in BUILT_IN_PERSONAS} == {
        "v_researcher",
        "nerf_generalist",
        "atlas-systems-architect",
        "default_free_assistant",
        "voice_assistant_persona",
    }
    assert get_built_in_persona(DEFAULT_PERSONA_ID).name == "V"


@pytest.mark.parametrize("persona", BUILT_IN_PERSONAS, ids=lambda p: p.id)
def test_nothing_is_found_wrong_with_a_built_in_persona(persona: Persona) -> None:
    assert validate_persona(persona, known_tools=()).issues == ()


def test_nothing_is_found_wrong_with_them_together() -> None:
    assert validate_personas(BUILT_IN_PERSONAS).totals == {
        "error": 0,
        "warning": 0,
        "suggestion": 0,
    }


def test_at_least_three_show_a_personality() -> None:
    shown = [personality_section(persona.personality_traits) for persona in BUILT_IN_PERSONAS]
    assert len([section for section in shown if section is not None]) >= 3


def test_an_unknown_id_names_the_known_ones() -> None:
    with pytest.raises(PersonaNotFoundError) as caught:
        get_built_in_persona("w")
    assert caught.value.details["known"] == sorted(p.id for p in BUILT_IN_PERSONAS)
