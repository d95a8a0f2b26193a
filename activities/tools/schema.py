"""A function's signature as JSON Schema, and arguments checked against it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from ...personas.errors import ConfigurationError
from .context import ToolContext
from .docstrings import parse_docstring

ARGUMENTS_INVALID = "TOOL_ARGUMENTS_INVALID"

MAX_PROBLEMS = 5
MAX_SHOWN = 100


class ArgumentsInvalidError(Exception):
    """The arguments do not fit the signature.

    Args:
        problems: One sentence for each argument that does not fit.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class _Schema(GenerateJsonSchema):
    # A default that is no JSON value is left out without a word.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        # Titles made from names tell the model nothing and cost tokens in every prompt.
        return False


class Signature:
    """The parameters of a tool's function.

    Args:
        function: A function or bound method; every parameter has a type hint.
        name: The tool's name, for error messages.

    Attributes:
        description: The docstring up to its first section.
        parameters: JSON Schema of the arguments, an object that allows no other properties.

    Raises:
        ConfigurationError: The signature cannot be described: a parameter without a type hint
            or with a type that has no JSON form, ``*args`` or ``**kwargs``.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name = name
        self._positional: list[str] = []
        self._fields: dict[str, str] = {}
        self._contexts: list[str] = []
        docs = parse_docstring(inspect.getdoc(function) or "")
        self.description = docs.description
        hints = self._hints(function)
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            hint = self._hint(parameter, hints)
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                self._positional.append(parameter.name)
            if _is_context(hint):
                self._contexts.append(parameter.name)
                continue
            # A field of its own name could hide an attribute of the model's class.
            field = f"argument_{len(fields)}"
            self._fields[parameter.name] = field
            default = ... if parameter.default is parameter.empty else parameter.default
            about = docs.parameters.get(parameter.name)
            fields[field] = (_annotated(hint, parameter.name, about), default)
        try:
            self._model: type[BaseModel] = create_model(
                "Arguments", __config__=ConfigDict(extra="forbid"), **fields
            )
            schema = self._model.model_json_schema(schema_generator=_Schema)
        except (PydanticUserError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"tool {name!r} has a parameter whose type has no JSON Schema: {error}"
            ) from error
        schema.pop("title", None)
        schema.setdefault("properties", {})
        self.parameters: dict[str, Any] = schema

    def bind(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> tuple[list[Any], dict[str, Any]]:
        """Check arguments and put them in the form of a call.

        Args:
            arguments: What the model gave.
            context: Handed to the parameters that ask for it.

        Returns:
            Positional and named values, converted to the types of the signature.

        Raises:
            ArgumentsInvalidError: They do not fit.
        """
        try:
            checked = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise ArgumentsInvalidError(_problems(error)) from error
        values = {name: getattr(checked, field) for name, field in self._fields.items()}
        values.update(dict.fromkeys(self._contexts, context))
        return [values.pop(name) for name in self._positional], values

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        if not inspect.isroutine(function):
            raise ConfigurationError(
                f"tool {self._name!r} is made of {function!r}; use a function or a bound method"
            )
        try:
            return typing.get_type_hints(function, include_extras=True)
        except (NameError, TypeError) as error:
            raise ConfigurationError(
                f"the type hints of tool {self._name!r} cannot be read: {error}; types that they "
                "name must be importable from the function's module"
            ) from error

    def _hint(self, parameter: inspect.Parameter, hints: dict[str, Any]) -> Any:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise ConfigurationError(
                f"tool {self._name!r} takes {stars}{parameter.name}, which a model cannot be told "
                "of; name each parameter"
            )
        if parameter.name not in hints:
            raise ConfigurationError(
                f"parameter {parameter.name!r} of tool {self._name!r} has no type hint; add one "
                "(a method is registered bound, with Tool.from_function)"
            )
        return hints[parameter.name]


def _is_context(hint: Any) -> bool:
    # Also as part of a union: the model must never get to fill one in.
    return hint is ToolContext or ToolContext in get_args(hint)


def _annotated(hint: Any, name: str, about: str | None) -> Any:
    metadata: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        metadata = tuple(rest)
    # What the annotation says comes later and wins over the docstring.
    return Annotated.__class_getitem__(  # type: ignore[attr-defined]  # built at run time
        (hint, Field(alias=name, description=about), *metadata)
    )


def _problems(error: ValidationError) -> list[str]:
    found = []
    for problem in error.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in problem["loc"]) or "arguments"
        text = f"argument {where!r}: {problem['msg']}"
        if problem["type"] not in ("missing", "extra_forbidden"):
            text += f" (got {_shown(problem['input'])})"
        found.append(text)
    if len(found) > MAX_PROBLEMS:
        left = len(found) - MAX_PROBLEMS
        found = [*found[:MAX_PROBLEMS], f"and {left} more"]
    return found


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
