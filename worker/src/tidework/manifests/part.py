"""What all parts of a document share: strict types, camelCase names, no unknown field.

Strict means as the API server would: a number in quotes is no number. The models are made to be
validated from JSON (parsing.py does), where lists are tuples and text is an enum's value.
What a schema alone cannot say stands twice, side by side: as Python for files, and as a rule in
CEL, which goes into the CRD so that the API server refuses the same documents.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

PART_FAULTS = "part_faults"

CEL_RULES = "x-kubernetes-validations"
OPEN = "x-kubernetes-preserve-unknown-fields"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"

TEN_YEARS_S = 315_360_000


class Part(BaseModel):
    """A mapping within a document."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)


def refuse(faults: Sequence[tuple[str | tuple[str, ...], str]]) -> None:
    """For validators of a whole part: raise all of its (field, reason) pairs, if there are any.

    field: a name, or the path of one further down
    """
    if faults:
        text = "; ".join(f"{field}: {reason}" for field, reason in faults)
        raise PydanticCustomError(PART_FAULTS, "{text}", {"faults": tuple(faults), "text": text})


def cel(rule: str, message: str, field: str = "") -> dict[str, str]:
    """A rule for the API server. ``field``: which of the part's fields it is about, '' for all."""
    found = {"rule": rule, "message": message}
    return found | ({"fieldPath": f".{field}"} if field else {})


def cel_rules(*rules: dict[str, str]) -> dict[str, Any]:
    """Rules as ``json_schema_extra`` of a part or a field."""
    return {CEL_RULES: list(rules)}


def cel_text(text: str) -> str:
    """Text between the quotes of a literal in CEL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def checked(accepts: Callable[[str], bool], rule: str) -> AfterValidator:
    """A check of text for which the API server has no twin; ``rule`` says what is accepted."""

    def check(found: str) -> str:
        if not accepts(found):
            raise ValueError(f"{found!r} is refused: {rule}")
        return found

    return AfterValidator(check)


class Check(ABC):
    """An annotation of a field: what it refuses here, the API server refuses by a rule of CEL."""

    __slots__ = ()

    @abstractmethod
    def check(self, found: Any) -> Any:
        """The value as it is. Raises ValueError that says what is accepted."""

    @abstractmethod
    def cel_rule(self) -> dict[str, str]:
        """The same as a rule of the CRD."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        found = handler(core)
        return found | {CEL_RULES: [*found.get(CEL_RULES, []), self.cel_rule()]}


@dataclass(frozen=True, slots=True)
class Form(Check):
    """A check of text by a pattern, here and in the API server; ``rule`` says what is accepted.

    pattern: of the whole text, in the syntax that Python and RE2 share
    """

    pattern: str
    rule: str

    def cel_rule(self) -> dict[str, str]:
        return cel(f"self.matches('^({cel_text(self.pattern)})$')", self.rule)

    def check(self, found: str) -> str:
        if re.fullmatch(self.pattern, found, re.ASCII) is None:
            raise ValueError(f"{found!r} is refused: {self.rule}")
        return found


DnsLabel = Annotated[
    str,
    Field(max_length=63),
    Form(
        "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        "use at most 63 characters of a-z, 0-9 and '-', starting and ending with a letter or digit",
    ),
]

TaskName = Annotated[
    str,
    Field(max_length=200),
    Form(
        "[A-Za-z_][A-Za-z0-9_.:/-]{0,199}",
        "use 1 to 200 characters of A-Z a-z 0-9 _ . : / - starting with a letter or underscore",
    ),
]

OpenObject = Annotated[dict[str, Any], WithJsonSchema({"type": "object", OPEN: True})]
"""Something of Kubernetes whose own form is large: checked by the API server, where it is used."""
