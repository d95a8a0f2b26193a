"""What a caller may say about an event: numbers that are limited rather than refused."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic import ValidationError as PydanticError
from pydantic.alias_generators import to_camel

from ..affect import limited
from ..errors import ValidationError


def _within(low: float, high: float) -> BeforeValidator:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"send a number, not {type(value).__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"send a finite number, not {value}")
        return float(limited(value, low, high))

    return BeforeValidator(check)


Balance = Annotated[float, _within(-1.0, 1.0)]
"""A number that is limited to [-1, 1]."""

Amount = Annotated[float, _within(0.0, 1.0)]
"""A number that is limited to [0, 1]."""

Change = Annotated[float, _within(-2.0, 2.0)]
"""A number to add to one in [-1, 1]; what is beyond the width of the range changes nothing."""


class Input(BaseModel):
    """Base of what callers send: in ``camelCase`` or ``snake_case``, immutable.

    Numbers beyond their range count as its end. What is no finite number is refused, and so are
    unknown keys: a misspelt one would pass for "as usual".
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=to_camel
    )

    @classmethod
    def of(cls, value: object) -> Self:
        """What a caller sent, checked.

        Raises:
            gmi.personas.errors.ValidationError: It is not of this form, a key is unknown, or a
                number is not finite.
        """
        if isinstance(value, cls):
            return value
        try:
            return cls.model_validate(value)
        except PydanticError as error:
            found = "; ".join(
                f"{'.'.join(str(part) for part in item['loc']) or 'the value'}: {item['msg']}"
                for item in error.errors(include_url=False, include_input=False)[:3]
            )
            raise ValidationError(f"{cls.__name__} cannot be read: {found}.") from None
