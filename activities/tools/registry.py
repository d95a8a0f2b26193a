"""Tools by name: what the model is told of them, and how their calls are carried out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

from ...personas.errors import ConfigurationError, ToolNotFoundError
from ...personas.messages import ToolDefinition
from ...workflows.steps import Effect, Route
from .schema import Signature

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
LOCAL_HEARTBEAT = 15.0
"""Seconds; the runner beats for its tools, so a shorter silence is no loss."""

REMOTE_SCHEDULE_TIMEOUT = 60.0
"""Seconds; nobody may ever serve another queue, while the session's own is waited for."""

_ATTRIBUTE = "__gmi_tool__"


@dataclass(frozen=True)
class Tool:
    """A tool: what the model is told, how a call travels, and what runs here.

    Attributes:
        name: Unique in a registry; letters, digits, ``_`` and ``-``, at most 64.
        definition: Name, description and JSON Schema for the model.
        route: How a call is carried out.
        function: What runs in this worker; ``None`` when the host or another worker runs it.
        module: The Python module that it comes from; ``""`` where that is not known.

    Raises:
        ConfigurationError: The name is not allowed, the definition or the route names another
            tool, or a time or count is out of range.
    """

    name: str
    definition: ToolDefinition
    route: Route
    function: Function | None = None
    module: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.definition.name != self.name or self.route.activity != self.name:
            raise ConfigurationError(
                f"tool {self.name!r} has a definition named {self.definition.name!r} and a route "
                f"to {self.route.activity!r}; all three must be the same"
            )
        _check_parameters(self.name, self.definition.parameters)
        _check_route(self.name, self.route)

    @classmethod
    def from_function(
        cls,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect = "once",
        timeout: float = 30,
        heartbeat: float | None = None,
        max_attempts: int = 3,
        approval: bool = False,
        execution: Literal["internal", "external"] = "internal",
        task_queue: str | None = None,
        schedule_timeout: float | None = None,
        reads_mind: bool = False,
    ) -> Tool:
        """Make a tool of a function or a bound method.

        The arguments are those of :func:`tool`; with ``reads_mind`` its context tells of the mind
        whose call it is.
        """
        tool_name: str = getattr(function, "__name__", "") if name is None else name
        check_name(tool_name)
        signature = Signature(function, tool_name)
        return cls(
            name=tool_name,
            definition=ToolDefinition(
                name=tool_name,
                description=signature.description if description is None else description,
                parameters=signature.parameters,
            ),
            route=_route(
                tool_name,
                effect=effect,
                timeout=timeout,
                heartbeat=heartbeat,
                max_attempts=max_attempts,
                approval=approval,
                external=execution == "external",
                task_queue=task_queue,
                schedule_timeout=schedule_timeout,
            ).model_copy(update={"reads_mind": reads_mind}),
            function=None if execution == "external" else function,
            module=getattr(function, "__module__", None) or "",
        )


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "once",
    timeout: float = 30,
    heartbeat: float | None = None,
    max_attempts: int = 3,
    approval: bool = False,
    execution: Literal["internal", "external"] = "internal",
    task_queue: str | None = None,
    schedule_timeout: float | None = None,
) -> Callable[[F], F]: ...


def tool(function: Function | None = None, /, **settings: Any) -> Any:  # noqa: D417  # see overload
    """Make a tool of a function; used as ``@tool`` or ``@tool(effect="read")``.

    The function itself is returned, as callable as before; :func:`tool_of` gives the
    :class:`Tool` made of it, and a :class:`ToolRegistry` takes the function as it is. For a
    method, use :meth:`Tool.from_function` with the bound method.

    Args:
        function: A sync or async function. Every parameter has a type hint. Sync functions run
            in a thread, so they may block.
        name: The tool's name; the function's own when left out.
        description: What the model is told; the docstring up to its first section when left out.
        effect: ``read`` changes nothing and ``idempotent`` may be done twice: both are tried
            again after a failure. ``once`` is never run a second time, whatever was lost.
        timeout: Seconds that one attempt may take.
        heartbeat: Seconds of silence after which an attempt counts as lost. When left out, 15,
            and none for a tool with a ``task_queue``.
        max_attempts: Attempts of a ``read`` or ``idempotent`` call.
        approval: The host must allow each call first.
        execution: ``external`` pauses the turn and lets the host answer: only the function's
            signature is used.
        task_queue: Queue of the workers that serve the tool; the session's own when left out.
        schedule_timeout: Seconds that a call waits for a worker to take it; ``math.inf`` waits
            for ever. When left out, for ever, and 60 for a tool with a ``task_queue``.

    Raises:
        ConfigurationError: The signature or a setting cannot be used.
    """

    def decorate(target: F) -> F:
        setattr(target, _ATTRIBUTE, Tool.from_function(target, **settings))
        return target

    return decorate if function is None else decorate(function)


def tool_of(function: Function) -> Tool:
    """The tool that :func:`tool` made of a function.

    Raises:
        ConfigurationError: The function was not decorated.
    """
    found = getattr(function, _ATTRIBUTE, None)
    if not isinstance(found, Tool):
        raise ConfigurationError(
            f"{function!r} is not a tool; decorate the function with @tool, or use "
            "Tool.from_function for a method"
        )
    return found


def remote_tool(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    task_queue: str,
    *,
    effect: Effect = "once",
    timeout: float = 30,
    heartbeat: float | None = None,
    max_attempts: int = 3,
    approval: bool = False,
    schedule_timeout: float | None = None,
) -> Tool:
    """A tool that other workers serve, in any language, as an activity type of this name.

    Args:
        name: The tool's name and the activity's type.
        description: What the model is told.
        parameters: JSON Schema of the arguments, an object.
        task_queue: Queue of the workers that serve it.
        effect: As for :func:`tool`.
        timeout: Seconds that one attempt may take.
        heartbeat: Seconds of silence after which an attempt counts as lost; declare it only
            when the serving worker heartbeats.
        max_attempts: Attempts of a ``read`` or ``idempotent`` call.
        approval: The host must allow each call first.
        schedule_timeout: Seconds that a call waits for a worker to take it; 60 when left out,
            ``math.inf`` waits for ever.

    Raises:
        ConfigurationError: A setting cannot be used.
    """
    return Tool(
        name=name,
        definition=ToolDefinition(name=name, description=description, parameters=dict(parameters)),
        route=_route(
            name,
            effect=effect,
            timeout=timeout,
            heartbeat=heartbeat,
            max_attempts=max_attempts,
            approval=approval,
            external=False,
            task_queue=task_queue,
            schedule_timeout=schedule_timeout,
        ),
    )


def external_tool(name: str, description: str, parameters: Mapping[str, Any] | Function) -> Tool:
    """A tool that the host answers: a call of it pauses the turn.

    Args:
        name: The tool's name.
        description: What the model is told.
        parameters: JSON Schema of the arguments, an object; or a function whose signature
            says the same. The function is never called.

    Raises:
        ConfigurationError: The name, the schema or the signature cannot be used.
    """
    check_name(name)
    module = ""
    if callable(parameters):
        module = getattr(parameters, "__module__", None) or ""
        schema = Signature(parameters, name).parameters
    else:
        schema = dict(parameters)
    return Tool(
        name=name,
        definition=ToolDefinition(name=name, description=description, parameters=schema),
        route=Route(activity=name, external=True),
        module=module,
    )


class ToolRegistry:
    """The tools of a worker.

    Args:
        tools: Tools, and functions decorated with :func:`tool`.

    Raises:
        ConfigurationError: Two tools have one name, or something is not a tool.
    """

    def __init__(self, tools: Iterable[Tool | Function] = ()) -> None:
        found: dict[str, Tool] = {}
        for item in tools:
            entry = item if isinstance(item, Tool) else tool_of(item)
            if entry.name in found:
                modules = [known.module for known in (found[entry.name], entry)]
                one, other = (f"module {name!r}" if name else "no module" for name in modules)
                raise ConfigurationError(
                    f"two tools are named {entry.name!r}, one of {one} and one of {other}; give "
                    "one of them another name",
                    details={"tool": entry.name, "modules": modules},
                )
            found[entry.name] = entry
        self._tools = {name: found[name] for name in sorted(found)}

    def all(self) -> list[Tool]:
        """Every tool, sorted by name."""
        return list(self._tools.values())

    def names(self) -> list[str]:
        """Every name, sorted."""
        return list(self._tools)

    def get(self, name: str) -> Tool:
        """The tool of this name.

        Raises:
            ToolNotFoundError: There is none; the error lists the names that exist.
        """
        found = self._tools.get(name)
        if found is None:
            known = ", ".join(self._tools) or "none"
            raise ToolNotFoundError(
                f"no tool is named {name!r}; the registered tools are: {known}",
                details={"tool": name, "known": self.names()},
            )
        return found


def check_name(name: str) -> None:
    """Refuse a name that a tool may not have.

    Raises:
        ConfigurationError: The name is reserved or has another form.
    """
    if name.startswith("gmi."):
        raise ConfigurationError(
            f"tool name {name!r} is not allowed: names with the prefix 'gmi.' are the project's own"
        )
    if NAME.fullmatch(name) is None:
        raise ConfigurationError(
            f"tool name {name!r} is not allowed: use 1 to 64 letters, digits, '_' and '-'"
        )


def _route(
    name: str,
    *,
    effect: Effect,
    timeout: float,
    heartbeat: float | None,
    max_attempts: int,
    approval: bool,
    external: bool,
    task_queue: str | None,
    schedule_timeout: float | None,
) -> Route:
    if effect not in ("read", "idempotent", "once"):
        raise ConfigurationError(
            f"tool {name!r} has effect {effect!r}; use 'read', 'idempotent' or 'once'"
        )
    if external:
        if task_queue is not None or approval:
            setting = "approval" if approval else "task_queue"
            raise ConfigurationError(
                f"tool {name!r} is external, so {setting} has no meaning: the host runs it; "
                "leave it out"
            )
        return Route(activity=name, effect=effect, timeout=timeout, external=True)
    if task_queue is not None and schedule_timeout is None:
        schedule_timeout = REMOTE_SCHEDULE_TIMEOUT
    if task_queue is None and heartbeat is None:
        heartbeat = LOCAL_HEARTBEAT
    return Route(
        activity=name,
        task_queue=task_queue,
        effect=effect,
        timeout=timeout,
        heartbeat=heartbeat,
        schedule_timeout=None if schedule_timeout == math.inf else schedule_timeout,
        max_attempts=max_attempts,
        approval=approval,
    )


def _check_route(name: str, route: Route) -> None:
    seconds = {
        "timeout": route.timeout,
        "heartbeat": route.heartbeat,
        "schedule_timeout": route.schedule_timeout,
    }
    for setting, value in seconds.items():
        if value is not None and not 0 < value < math.inf:
            raise ConfigurationError(
                f"tool {name!r} has {setting} {value!r}; use a finite number of seconds above 0"
            )
    if route.max_attempts < 1:
        raise ConfigurationError(
            f"tool {name!r} has max_attempts {route.max_attempts!r}; use 1 or more"
        )
    if route.task_queue == "":
        raise ConfigurationError(
            f"tool {name!r} has an empty task_queue; name one, or leave it out"
        )


def _check_parameters(name: str, parameters: dict[str, Any]) -> None:
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the parameters of tool {name!r} are not JSON: {error}"
        ) from error
    if parameters.get("type") != "object":
        raise ConfigurationError(
            f"the parameters of tool {name!r} have type {parameters.get('type')!r}; "
            "a tool's arguments are a JSON Schema of type 'object'"
        )
