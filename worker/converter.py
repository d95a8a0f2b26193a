"""How values travel between client, server and worker: as JSON, with pydantic's models."""

from __future__ import annotations

from dataclasses import replace

from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
)

from ..personas.errors import ConfigurationError

_PARTS: tuple[EncodingPayloadConverter, ...] = tuple(PydanticPayloadConverter().converters.values())


class SharedPayloadConverter(PydanticPayloadConverter):
    """Temporal's converter for pydantic models, whose parts a process makes once.

    The SDK makes a converter for each session and for each command. Its parts keep what pydantic
    has compiled for each type, which would be compiled again in every session.
    """

    def __init__(self) -> None:
        CompositePayloadConverter.__init__(self, *_PARTS)


def converter_for(existing: DataConverter | None) -> DataConverter:
    """A client's converter, or one like it that knows pydantic's models.

    Raises:
        ConfigurationError: The client has a payload converter of its own that does not know them.
    """
    converter = existing or DataConverter.default
    kind = converter.payload_converter_class
    if kind in (DefaultPayloadConverter, PydanticPayloadConverter):
        return replace(converter, payload_converter_class=SharedPayloadConverter)
    if not issubclass(kind, PydanticPayloadConverter):
        raise ConfigurationError(
            f"The client's payload converter {kind.__name__} does not know pydantic models; "
            "derive it from temporalio.contrib.pydantic.PydanticPayloadConverter."
        )
    return converter
