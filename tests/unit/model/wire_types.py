"""Types of params and results, each with something that could be lost on the way."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from enum import Enum, IntEnum, StrEnum
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    computed_field,
    field_validator,
    model_serializer,
)
from typing_extensions import TypedDict

AMSTERDAM = ZoneInfo("Europe/Amsterdam")
KEY = UUID("01234567-89ab-cdef-0123-456789abcdef")
NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


class Animal(BaseModel):
    a: int


class Dog(Animal):
    b: int


@dataclasses.dataclass
class Plain:
    a: int
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class PlainDog(Plain):
    b: int = 0


class Order(BaseModel):
    key: UUID = Field(default_factory=uuid4)
    tags: list[str] = []


@dataclasses.dataclass
class OrderRecord:
    key: UUID = dataclasses.field(default_factory=uuid4)


class StrictOne(BaseModel):
    model_config = ConfigDict(strict=True)
    at: datetime
    key: UUID
    colour: Colour
    raw: bytes
    pair: tuple[int, str]
    some: set[int]


class Aliased(BaseModel):
    x: int = Field(validation_alias="in", serialization_alias="out")
    y: int = Field(serialization_alias="why")
    z: int = Field(alias="zed")
    w: int = Field(1, validation_alias=AliasChoices(AliasPath("deep", 0), "double"))


class ByNameAlone(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=False)
    x: int = Field(alias="other")


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.x


class Excluding(BaseModel):
    x: int = Field(1, exclude=True)


class Pathed(BaseModel):
    x: int = Field(validation_alias=AliasPath("deep", "x"))


class Tree(BaseModel):
    name: bytes
    children: list[Tree] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 0


class Hexed(BaseModel):
    model_config = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")
    raw: bytes


class Keywords(BaseModel):
    """Fields that are called as parts of a schema are."""

    default: bytes
    type: bytes
    fields: dict[str, bytes]
    metadata: bytes


class Hashed(BaseModel):
    """Reading it twice changes it twice."""

    x: str

    @field_validator("x")
    @classmethod
    def _hash(cls, found: str) -> str:
        return f"hash of {found}"


class Moody(BaseModel):
    """Dumps something else."""

    x: int

    @model_serializer
    def _dump(self) -> dict[str, int]:
        return {"x": self.x + 1}


@dataclasses.dataclass
class MadeLater:
    """Has what no caller can give."""

    a: int
    key: UUID = dataclasses.field(default_factory=uuid4, init=False)


class Cached(BaseModel):
    x: int
    _seen: int = PrivateAttr(0)


class Pair(NamedTuple):
    left: int
    right: datetime


class Options(TypedDict, total=False):
    at: datetime
    raw: bytes


class Asked(TypedDict):
    at: datetime


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    inside: T
