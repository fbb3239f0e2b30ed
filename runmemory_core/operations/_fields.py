"""The argument types that requests are made of, each with one JSON type and words a model can act on.

Some clients drop minimum, maximum and pattern from a schema, so every bound is in the description too.
"""

from __future__ import annotations

from math import log10
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from runmemory_core.model import RunStatus

NAME_CHARACTERS = 200
MAX_COUNT = 2**53
"""More than any count reaches, and what every database and JSON reader can hold."""
_NAME_BOUND = 10**NAME_CHARACTERS


def _number_as_name(value: object) -> object:
    """Integers given as ids equal their decimal strings; a bool is no integer here."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if -_NAME_BOUND < value < _NAME_BOUND:
        return str(value)
    # Python refuses to write very long integers, which no name is anyway.
    digits = int(value.bit_length() * log10(2)) + 1
    raise PydanticCustomError(
        "integer_too_long",
        "is an integer of about {digits} digits; it takes at most {bound} characters: give it a shorter name",
        {"digits": f"{digits:,}", "bound": NAME_CHARACTERS},
    )


Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS), BeforeValidator(_number_as_name)]
# The first wrong item is enough: a body may hold a hundred thousand of them.
Names = Annotated[list[Name], Field(fail_fast=True)]
Absent: TypeAlias = None
"""Marks an optional argument: null counts as absent, so its schema shows no union with null."""

JsonObject = Annotated[
    dict[str, Any],
    Field(json_schema_extra={"type": "object", "properties": {}, "additionalProperties": True}),
]
RunId = Annotated[Name, Field(description="Stable name of this piece of work, 1-200 characters.")]
Job = Annotated[Name, Field(description="What the run is for, in your words, 1-200 characters.")]
IdempotencyKey = Annotated[
    Name,
    Field(
        description="1-200 characters. Same key, same call: the first answer comes back, nothing is saved twice."
    ),
]
Attempt = Annotated[
    int,
    Field(
        strict=True, ge=1, le=MAX_COUNT, description="The attempt that resume returned; stops a stale worker."
    ),
]
Seq = Annotated[
    int,
    Field(
        strict=True,
        ge=1,
        le=MAX_COUNT,
        description="One kept checkpoint to go on from, instead of the latest.",
    ),
]
Status = Annotated[
    RunStatus, Field(description="running (default), paused (waits for a person), finished or failed.")
]
Limit = Annotated[int, Field(strict=True, ge=1, le=500, description="At most so many rows, 1-500.")]
Flag = Annotated[bool, Field(strict=True)]
Lane = Annotated[str, Field(max_length=2_000)]
Key = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS)]
Op = Literal["put", "writes"]


class Request(BaseModel):
    """Base of every request: unknown arguments are refused by name, null counts as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: object) -> object:
        if isinstance(data, dict):
            given = cast("dict[object, object]", data)
            return {k: v for k, v in given.items() if v is not None} if None in given.values() else given
        return data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        arguments = handler.resolve_ref_schema(schema).get("properties", {})
        for name, shown in arguments.items():
            match shown:
                case {"anyOf": [inner, {"type": "null"}], **beside}:
                    arguments[name] = inner | beside
                case _:
                    pass
            if arguments[name].get("default", ...) is None:
                del arguments[name]["default"]  # null is no value of a single type
        return schema


class Shown(BaseModel):
    """Base of every reply: fields of a newer service are ignored, so old clients keep working."""

    model_config = ConfigDict(extra="ignore")
