"""A call on its whole way: arguments, envelope, bytes, arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from tidework.model.command import CommandSignature
from tidework.model.job import Job, decode_job, decode_stored_job
from tidework.model.values.signature import Signature


def arrives(signature: Signature, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What a worker calls the function with; its envelope is one that any reader takes."""
    params = signature.to_params(args, kwargs)
    extra = {"unions": params.unions} if params.unions else {}
    raw = Job("id", "t", params, extra=extra).encode()
    decode_job(raw, new_id="", now=0)
    job = decode_stored_job(raw)
    return signature.to_arguments(job.params, job.unions)


def taking(hint: Any) -> Signature:
    """Of a task with one param, x."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = hint
    return Signature("t", function)


def taking_more(hint: Any) -> Signature:
    """Of a task that takes any names."""

    def function(**more: Any) -> None: ...

    function.__annotations__["more"] = hint
    return Signature("t", function)


def model_of(hint: Any) -> type[BaseModel]:
    """A model with one field, x."""
    return type("Holder", (BaseModel,), {"__annotations__": {"x": hint}, "__module__": __name__})


def ways(hint: Any, value: Any) -> list[tuple[str, Callable[[], Any]]]:
    """The value as a param of that type, and wherever else it may stand; gives what arrives."""
    holder = model_of(hint)
    return [
        ("param", lambda: arrives(taking(hint), value)["x"]),
        ("list", lambda: arrives(taking(list[hint]), [value])["x"][0]),
        ("dict", lambda: arrives(taking(dict[str, hint]), {"a": value})["x"]["a"]),
        ("model", lambda: arrives(taking(holder), holder.model_construct(x=value))["x"].x),
        ("kwargs", lambda: arrives(taking_more(hint), a=value)["a"]),
    ]


def command_of(hint: Any) -> CommandSignature:
    """Of a command with one param, x."""
    return CommandSignature("c", model_of(hint))
