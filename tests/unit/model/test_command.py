"""What may be a command, and what becomes of its params."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tidework.errors import ConfigurationError, ParamsError
from tidework.model.command import JOB_VARIABLES, Command, CommandOptions, CommandSignature


class Report(BaseModel):
    model_config = ConfigDict(extra="forbid")

    to: str
    pages: int = Field(default=1, ge=1, alias="numberOfPages")


@pytest.mark.parametrize(
    ("argv", "options", "reason"),
    [
        ("php report.php", {}, "no shell will read it"),
        ([], {}, "needs a program"),
        ([""], {}, "needs a program"),
        (["php", 5], {}, "5 is a int; write it as text"),
        (["php", "a\0b"], {}, "holds a NUL"),
        (["php"], {"cwd": "a\0b"}, "holds a NUL"),
        (["php"], {"env": {"A": "a\0b"}}, "holds a NUL"),
        (["php"], {"env": {"A": 1}}, "1 is a int"),
        (["php"], {"env": {"A=B": "x"}}, "not the name of a variable"),
        (["php"], {"env": {"": "x"}}, "not the name of a variable"),
        (["php"], {"max_output": -1}, "0 or more bytes"),
        *[(["php"], {"env": {name: "x"}}, "is set by the worker") for name in JOB_VARIABLES],
    ],
)
def test_what_no_system_could_start_is_refused(
    argv: Any, options: CommandOptions, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        Command.of(argv, options)


def test_a_folder_may_be_a_path_and_nothing_need_be_given() -> None:
    assert Command.of(["php"], {"cwd": Path("scripts")}).cwd == "scripts"
    assert Command.of(["php"], {"cwd": None, "env": None}) == Command(("php",))


def test_without_a_model_params_are_any_object() -> None:
    signature = CommandSignature("t", None)
    params = {"any": [1, {"self": None}], "p_x": 1, "model_config": 2, "überall": 2**70}

    assert signature.to_params((), params) == params
    assert signature.to_arguments(params) == params
    with pytest.raises(ParamsError):
        signature.to_params((1,), {})


def test_a_model_checks_params_on_both_sides_and_fills_in_what_is_missing() -> None:
    signature = CommandSignature("t", Report)

    assert signature.to_params((), {"to": "ada"}) == {"to": "ada"}
    assert signature.to_params((), {"to": "ada", "numberOfPages": "3"}) == {
        "to": "ada",
        "numberOfPages": 3,
    }
    assert signature.to_arguments({"to": "ada"}) == {"to": "ada", "numberOfPages": 1}
    for broken in ({}, {"to": "ada", "numberOfPages": 0}, {"to": "ada", "more": 1}):
        with pytest.raises(ParamsError, match="'t'"):
            signature.to_params((), broken)
        with pytest.raises(ParamsError, match="'t'"):
            signature.to_arguments(broken)
    assert signature.json_schema()["properties"].keys() == {"to", "numberOfPages"}
