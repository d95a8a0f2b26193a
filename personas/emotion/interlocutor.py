"""Who speaks with the persona, and how its prompt tells so."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from .inputs import Input

DEFAULT_NAME = "user"
"""Whoever is not named, in a conversation and in a perceived event alike."""

MAX_NAME_CHARS = 200
MAX_TEXT_CHARS = 20_000


class Interlocutor(Input):
    """Who speaks with the persona, or whom an event comes from.

    A plain string is a name; no name, or a blank one, is ``user``.

    Attributes:
        name: Shown to the persona, and the source that memories of the exchange name; at most 200
            characters on one line.
        description: Who that is, in the host's words.
        extensions: More about them under headings of the host's own, in the order given. All the
            words together have at most 20,000 characters.
    """

    name: str = Field(default=DEFAULT_NAME, max_length=MAX_NAME_CHARS)
    description: str | None = None
    extensions: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        if data is None:
            return {}
        if isinstance(data, str):
            data = {"name": data}
        if not isinstance(data, dict):
            return data
        given = {key: value for key, value in data.items() if value is not None}
        name = given.get("name", DEFAULT_NAME)
        if isinstance(name, str):
            given["name"] = " ".join(name.split()) or DEFAULT_NAME
        return given

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        size = len(self.description or "")
        size += sum(len(key) + len(value) for key, value in self.extensions.items())
        if size > MAX_TEXT_CHARS:
            raise ValueError(
                f"description and extensions have {size} characters and the limit is "
                f"{MAX_TEXT_CHARS}; say less about them"
            )
        return self

    def text(self, *, speaking: bool = True) -> str | None:
        """What the prompt says about them; ``None`` when there is nothing to say.

        Chat and perceived events use the same words. Blank extensions are left out.

        Args:
            speaking: They speak with the persona now; otherwise something came from them, and the
                text does not say that they speak.
        """
        description = (self.description or "").strip()
        notes = [
            (" ".join(heading.split()), note.strip())
            for heading, note in self.extensions.items()
            if heading.strip() and note.strip()
        ]
        spoken = [f"You are speaking with {self.name}."] if speaking else []
        if not description and not notes:
            return None if self.name == DEFAULT_NAME or not spoken else spoken[0]
        parts = [f"## About {self.name}", *spoken]
        if description:
            parts.append(description)
        parts += [f"### {heading}\n{note}" for heading, note in notes]
        return "\n\n".join(parts)
