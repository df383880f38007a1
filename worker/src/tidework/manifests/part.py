"""What all parts of a document share: strict types, camelCase names, no unknown field.

Strict means as the API server would: a number in quotes is no number. The models are made to be
validated from JSON (parsing.py does), where lists are tuples and text is an enum's value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from tidework.model.identity import is_dns_label, is_task_name

PART_FAULTS = "part_faults"


class Part(BaseModel):
    """A mapping within a document."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)


def refuse(faults: Sequence[tuple[str, str]]) -> None:
    """For validators of a whole part: raise all of its (field, reason) pairs, if there are any."""
    if faults:
        text = "; ".join(f"{field}: {reason}" for field, reason in faults)
        raise PydanticCustomError(PART_FAULTS, "{text}", {"faults": tuple(faults), "text": text})


def checked(accepts: Callable[[str], bool], rule: str) -> AfterValidator:
    """A check of text; ``rule`` says what is accepted."""

    def check(found: str) -> str:
        if not accepts(found):
            raise ValueError(f"{found!r} is refused: {rule}")
        return found

    return AfterValidator(check)


DnsLabel = Annotated[
    str,
    checked(
        is_dns_label,
        "use at most 63 characters of a-z, 0-9 and '-', starting and ending with a letter or digit",
    ),
]

TaskName = Annotated[
    str,
    checked(
        is_task_name,
        "use 1 to 200 characters of A-Z a-z 0-9 _ . : / - starting with a letter or underscore",
    ),
]
