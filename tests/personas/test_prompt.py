import itertools
from typing import Any

import pytest

from gmi.personas import BUILT_IN_PERSONAS, Persona, PromptContext, Section, assemble
from gmi.personas.history import NOT_RUN_TEXT, SUMMARY_PREFIX
from gmi.personas.messages import ImagePart, Message, TextPart, ToolCall
from gmi.personas.prompt import (
    PRIORITY_STRUCTURED_REPLY,
    RETRIEVED_INTRODUCTION,
    RULE_LINE,
    AssembledPrompt,
)


def persona(**fields: Any) -> Persona:
    return Persona.model_validate(
        {
            "id": "p",
            "name": "P",
            "description": "d",
            "version": "1.0.0",
            "baseSystemPrompt": "BASE",
            **fields,
        }
    )


def user(text: str) -> Message:
    return Message(role="user", content=text)


def reply(text: str) -> Message:
    return Message(role="assistant", content=text)


def ask(call_id: str) -> Message:
    return Message(role="assistant", calls=[ToolCall(id=call_id, name="t", arguments={"a": 1})])


def result(call_id: str) -> Message:
    return Message(role="tool", content="res", call_id=call_id)


def build(
    who: Persona,
    history: list[Message] | None = None,
    turn: list[Message] | None = None,
    **options: Any,
) -> AssembledPrompt:
    options = {"window_tokens": 8192, "model": "test:m", **options}
    return assemble(who, history or [], [user("hello")] if turn is None else turn, **options)


def system_of(prompt: AssembledPrompt) -> str:
    assert prompt.messages[0].role == "system"
    return prompt.messages[0].text


def element(priority: float | None, content: str, **fields: Any) -> dict[str, Any]:
    return {"id": content, "content": content, "priority": priority, **fields}


def test_the_sections_stand_in_one_message_in_ascending_priority() -> None:
    who = persona(
        personalityTraits={"openness": 0.9},
        contextualPromptElements=[
            element(None, "E-none", type="behavioral_guidance"),
            element(70, "E-70"),
        ],
        hardLimits=[" never lie ", " ", "stay kind"],
    )
    prompt = build(
        who,
        extra_sections=[
            Section(5000, "X-5000", "late"),
            Section(0, "X-0", "first"),
            Section(55, "X-55", "skills"),
            Section(PRIORITY_STRUCTURED_REPLY, "X-900", "structured"),
            Section(3, "   ", "blank"),
        ],
        context=PromptContext(
            preferences={"verbosity": "short", "preferredFormat": "markdown"},
            interlocutor="Kim",
            interlocutor_description="A colleague.",
            suffix="SUFFIX",
        ),
    )
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert prompt.sections == [
        "first",
        "base",
        "personality",
        "interlocutor",
        "skills",
        "element E-70",
        "verbosity",
        "format",
        "element E-none",
        "structured",
        "suffix",
        "late",
        "hard limits",
    ]
    blocks = system_of(prompt).split("\n\n")
    assert len(blocks) == len(prompt.sections)
    assert blocks[:2] == ["X-0", "BASE"]
    assert blocks[2].startswith("## Personality & Communication Style\n- ")
    assert blocks[3] == "You are speaking with Kim. A colleague."
    assert blocks[-1].endswith("\n- never lie\n- stay kind")


def test_pieces_of_equal_priority_keep_their_order() -> None:
    prompt = build(persona(), extra_sections=[Section(50, "b"), Section(50, "a"), Section(50, "c")])
    assert system_of(prompt) == "BASE\n\nb\n\na\n\nc"


@pytest.mark.parametrize(
    ("base", "text"),
    [
        ({"template": "T {{name}}"}, "T {{name}}"),
        ([{"content": "two", "priority": 2}, {"content": "one", "priority": 1}], "one\n\ntwo"),
        ([{"content": "late", "priority": 60}, {"content": "first"}], "first\n\nlate"),
    ],
)
def test_a_base_prompt_has_three_forms(base: Any, text: str) -> None:
    assert system_of(build(persona(baseSystemPrompt=base))) == text


def test_without_any_section_there_is_no_system_message() -> None:
    prompt = build(persona(baseSystemPrompt=" "))
    assert prompt.messages == [user("hello")]


def test_without_hard_limits_there_is_no_block() -> None:
    assert system_of(build(persona(hardLimits=["  "]))) == "BASE"


@pytest.mark.parametrize(
    ("criteria", "applies"),
    [
        ({}, True),
        ({"mood": "curious"}, True),
        ({"mood": "focused"}, False),
        ({"userSkillLevel": "expert", "taskComplexity": "simple"}, True),
        ({"userSkillLevel": "expert", "taskComplexity": "complex"}, False),
        ({"language": "de"}, True),
        ({"language": "en"}, False),
        ({"taskHint": "REFUND"}, True),
        ({"taskHint": ["invoice", "refund"]}, True),
        ({"taskHint": "invoice"}, False),
        ({"conversationSignals": ["hurry"]}, True),
        ({"conversationSignals": ["hurry", "angry"]}, False),
    ],
)
def test_an_element_applies_when_all_its_criteria_match(
    criteria: dict[str, Any], applies: bool
) -> None:
    context = PromptContext(
        mood="curious",
        user_skill_level="expert",
        task_complexity="simple",
        language="de",
        task_hint="a refund for order 7",
        signals=frozenset({"hurry", "calm"}),
    )
    who = persona(contextualPromptElements=[element(None, "ELEMENT", criteria=criteria)])
    prompt = build(who, context=context)
    assert ("ELEMENT" in system_of(prompt)) is applies
    assert prompt.elements == (["ELEMENT"] if applies else [])


def test_of_many_elements_the_ten_of_the_highest_priority_are_sent() -> None:
    who = persona(contextualPromptElements=[element(n, f"<{n}>") for n in range(101, 114)])
    expected = [f"<{n}>" for n in range(104, 114)]
    assert system_of(build(who)).split("\n\n")[1:] == expected


def test_an_augmentation_is_appended_to_the_users_message() -> None:
    who = persona(
        contextualPromptElements=[
            element(None, "AUG", type="user_prompt_augmentation"),
            element(None, "SHOT", type="few_shot_example"),
        ]
    )
    prompt = build(who, [user("before"), reply("ok")], [user("q"), ask("a"), result("a")])
    assert [m.content for m in prompt.messages] == ["BASE", "before", "ok", "q\n\nAUG", None, "res"]


def test_retrieved_context_stands_ahead_of_the_question_and_not_in_the_system_message() -> None:
    plain = build(persona(), [user("h1"), reply("h2")], [user("the question")])
    prompt = build(persona(), [user("h1"), reply("h2")], [user("the question")], retrieved="RC")
    assert prompt.messages[:-1] == plain.messages[:-1]
    assert prompt.messages[-1].content == (f"{RETRIEVED_INTRODUCTION}\n\nRC{RULE_LINE}the question")


def test_retrieved_context_stands_ahead_of_a_question_with_images() -> None:
    image = ImagePart(url="https://example.org/a.png")
    turn = [Message(role="user", content=[TextPart(text="look"), image])]
    content = build(persona(), [], turn, retrieved="RC").messages[-1].content
    assert content == [
        TextPart(text=f"{RETRIEVED_INTRODUCTION}\n\nRC{RULE_LINE}"),
        TextPart(text="look"),
        image,
    ]


def test_each_step_of_a_turn_begins_with_the_whole_prompt_of_the_step_before() -> None:
    history = [user("h"), reply("r")] * 15
    turn = [user("q"), ask("a"), result("a"), ask("b"), result("b")]
    steps = [
        build(persona(), history, turn[:length], retrieved="RC").messages for length in (1, 3, 5)
    ]
    for shorter, longer in itertools.pairwise(steps):
        assert longer[: len(shorter)] == shorter
    assert RETRIEVED_INTRODUCTION in steps[0][-1].text


def test_retrieved_context_is_a_message_of_its_own_when_the_turn_has_no_question() -> None:
    prompt = build(persona(), [user("h1"), ask("a")], [result("a")], retrieved="RC")
    assert [m.role for m in prompt.messages] == ["system", "user", "user", "assistant", "tool"]
    assert prompt.messages[2].content == f"{RETRIEVED_INTRODUCTION}\n\nRC"
    assert prompt.messages[4] == result("a")


def test_the_question_is_sent_once() -> None:
    prompt = build(persona(), [user("h"), reply("r")], [user("the question")])
    assert [m.text for m in prompt.messages].count("the question") == 1


def test_what_providers_refuse_is_repaired() -> None:
    history = [
        Message(role="summary", content="they met"),
        user("q"),
        ask("a"),
        Message(role="thought", content="hm"),
        Message(role="assistant", content="half", partial=True),
        user("again"),
        reply("done"),
    ]
    messages = build(persona(), history).messages
    assert [m.role for m in messages] == [
        "system",
        "system",
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "user",
    ]
    assert messages[1].content == SUMMARY_PREFIX + "they met"
    assert messages[4].content == NOT_RUN_TEXT
    kept = build(persona(), history, keep_partial_text=True).messages
    assert [m.text for m in kept].count("half") == 1


def test_the_persona_says_how_many_messages_are_shown() -> None:
    history = [user(f"u{n}") for n in range(30)]
    assert len(build(persona(), history).messages) == 1 + 20
    three = persona(conversationContextConfig={"maxMessages": 3})
    prompt = build(three, history)
    assert [m.text for m in prompt.messages[1:]] == ["u28", "u29", "hello"]
    assert prompt.left_out.messages_by_count == 28
    assert len(build(three, history, max_messages=2).messages) == 3


def test_what_the_window_leaves_out_is_said() -> None:
    history = [user("x" * 400), reply("y" * 400)] * 5
    prompt = build(persona(), history, window_tokens=1000)
    assert len(prompt.messages) == 1 + 3 + 1
    assert prompt.left_out.messages_by_budget == 7
    assert prompt.left_out.tokens_by_budget == 7 * 105
    assert prompt.left_out.messages_by_count == 0
    assert prompt.warnings == []
    assert prompt.estimated_tokens == 1 + 3 * 105 + 7


def test_a_prompt_over_the_window_is_sent_with_a_warning() -> None:
    prompt = build(persona(), [user("old")], [user("x" * 8000)], window_tokens=1000)
    assert [m.role for m in prompt.messages] == ["system", "user"]
    (warning,) = prompt.warnings
    assert warning.startswith("TOKEN_BUDGET_EXCEEDED_POST_OPT")
    assert "1000" in warning
    assert "test:m" in warning


def test_tool_definitions_take_their_share() -> None:
    history = [user("x" * 400), reply("y" * 400)]
    assert build(persona(), history, window_tokens=1000).left_out.messages_by_budget == 0
    assert build(persona(), history, window_tokens=1000, tools=18).left_out.messages_by_budget == 2


@pytest.mark.parametrize("who", BUILT_IN_PERSONAS, ids=lambda p: p.id)
def test_the_same_arguments_give_the_same_bytes(who: Persona) -> None:
    def once() -> list[str]:
        frozen = Persona.from_json(who.to_json())
        prompt = build(
            frozen,
            [user("h"), ask("a"), result("a"), reply("r")],
            [user("q")],
            retrieved="RC",
            context=PromptContext(user_skill_level="beginner", preferences={"verbosity": "low"}),
        )
        return [message.model_dump_json() for message in prompt.messages]

    assert once() == once()


def test_what_is_given_is_not_changed() -> None:
    history = [user("h"), ask("a")]
    turn = [result("a")]
    build(persona(), history, turn, retrieved="RC")
    assert history == [user("h"), ask("a")]
    assert turn == [result("a")]
