from __future__ import annotations

import math
from typing import Any

import pytest

from gmi.activities.tools import (
    Tool,
    ToolRegistry,
    external_tool,
    remote_tool,
    tool,
    tool_of,
)
from gmi.personas.errors import ConfigurationError, ToolNotFoundError
from gmi.personas.messages import ToolDefinition
from gmi.workflows.steps import Route

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


@tool
def plain(a: int) -> int:
    """Plain."""
    return a + 1


@tool(
    name="set-up",
    description="Told to the model.",
    effect="idempotent",
    timeout=5,
    heartbeat=2,
    max_attempts=7,
    approval=True,
)
async def configured(a: int) -> int:
    """Not told."""
    return a + 2


def test_a_bare_decorator_gives_the_careful_defaults() -> None:
    made = tool_of(plain)
    assert made.name == "plain"
    assert made.definition.description == "Plain."
    assert made.route == Route(
        activity="plain",
        task_queue=None,
        effect="once",
        timeout=30,
        heartbeat=15,
        schedule_timeout=None,
        max_attempts=3,
        external=False,
        approval=False,
    )
    assert made.function is plain


async def test_decorated_functions_stay_callable() -> None:
    assert plain(1) == 2
    assert await configured(1) == 3


def test_settings_reach_the_definition_and_the_route() -> None:
    made = tool_of(configured)
    assert made.definition.name == made.name == "set-up"
    assert made.definition.description == "Told to the model."
    assert made.route == Route(
        activity="set-up",
        effect="idempotent",
        timeout=5,
        heartbeat=2,
        max_attempts=7,
        approval=True,
    )


def test_a_tool_on_another_queue_has_no_heartbeat_and_a_bounded_wait() -> None:
    @tool(task_queue="gpu", effect="read")
    def draw(what: str) -> str:
        return what

    route = tool_of(draw).route
    assert (route.task_queue, route.heartbeat, route.schedule_timeout) == ("gpu", None, 60)


def test_a_remote_tool_runs_nothing_here() -> None:
    made = remote_tool(
        "resize", "Resize.", OBJECT, "images", effect="read", heartbeat=9, schedule_timeout=math.inf
    )
    assert made.function is None
    assert made.definition == ToolDefinition(
        name="resize", description="Resize.", parameters=OBJECT
    )
    assert made.route == Route(
        activity="resize", task_queue="images", effect="read", heartbeat=9, schedule_timeout=None
    )


def test_an_external_decorated_function_is_only_a_signature() -> None:
    @tool(execution="external")
    def ask(question: str) -> str:
        """Ask."""
        raise AssertionError("the host answers")

    made = tool_of(ask)
    assert made.function is None
    assert made.route.external
    assert made.definition.parameters["required"] == ["question"]


def test_an_external_tool_takes_a_schema_or_a_signature() -> None:
    def signature(question: str) -> str:
        raise AssertionError("never called")

    by_function = external_tool("ask", "Ask.", signature)
    by_schema = external_tool("ask", "Ask.", by_function.definition.parameters)
    assert by_function == by_schema
    assert by_schema.route.external
    assert by_schema.function is None


def test_a_bound_method_becomes_a_tool_by_from_function() -> None:
    class Counter:
        count = 0

        def increase(self, by: int = 1) -> int:
            """Count."""
            self.count += by
            return self.count

    made = Tool.from_function(Counter().increase, effect="once")
    assert made.name == "increase"
    assert made.function is not None
    assert made.function(by=2) == 2


def test_a_registry_lists_its_tools_by_name_whatever_the_order() -> None:
    ask = external_tool("ask", "Ask.", OBJECT)
    one, other = ToolRegistry([plain, ask, configured]), ToolRegistry([configured, plain, ask])
    assert one.names() == other.names() == ["ask", "plain", "set-up"]
    assert one.all() == other.all()
    assert one.get("ask") is ask


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ToolNotFoundError, match=r"'plan'.*plain, set-up") as raised:
        ToolRegistry([plain, configured]).get("plan")
    assert raised.value.details["known"] == ["plain", "set-up"]


def test_an_empty_registry_says_so() -> None:
    with pytest.raises(ToolNotFoundError, match="none"):
        ToolRegistry().get("plain")


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="'plain'"):
        ToolRegistry([plain, external_tool("plain", "", OBJECT)])


def test_two_tools_of_one_name_are_named_with_their_modules() -> None:
    def ask(question: str) -> str:
        return question

    ask.__module__ = "shop.tools"
    first = Tool.from_function(ask)
    ask.__module__ = "desk.tools"
    with pytest.raises(ConfigurationError) as raised:
        ToolRegistry([first, external_tool("ask", "Ask.", ask)])
    assert "shop.tools" in raised.value.message
    assert "desk.tools" in raised.value.message
    assert raised.value.details["modules"] == ["shop.tools", "desk.tools"]


def test_an_undecorated_function_is_refused() -> None:
    def naked(a: int) -> int:
        return a

    with pytest.raises(ConfigurationError, match="@tool"):
        ToolRegistry([naked])


@pytest.mark.parametrize("name", ["gmi.store.read", "", "a b", "ä", "a.b", "x" * 65, "ok\n"])
def test_a_name_that_is_not_allowed_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="not allowed"):
        external_tool(name, "", OBJECT)
    with pytest.raises(ConfigurationError, match="not allowed"):
        tool(name=name)(plain)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"effect": "twice"}, "'twice'"),
        ({"timeout": 0}, "timeout 0"),
        ({"timeout": math.inf}, "timeout inf"),
        ({"heartbeat": -1}, "heartbeat -1"),
        ({"schedule_timeout": 0}, "schedule_timeout 0"),
        ({"max_attempts": 0}, "max_attempts 0"),
        ({"task_queue": ""}, "task_queue"),
        ({"execution": "external", "approval": True}, "approval"),
        ({"execution": "external", "task_queue": "q"}, "task_queue"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Tool.from_function(lambda: None, name="t", **settings)


@pytest.mark.parametrize(
    "parameters", [{}, {"type": "array"}, {"type": "object", "default": {1, 2}}]
)
def test_parameters_that_are_no_object_schema_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="parameters of tool 't'"):
        remote_tool("t", "", parameters, "q")


def test_a_tool_whose_parts_name_different_tools_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'a'.*'b'"):
        Tool("a", ToolDefinition(name="a"), Route(activity="b"))
