"""Every `tidework ...` of the pages is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from tidework.cli.commands import root

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md"))
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:[\w./]+/bin/|\$ |.*\| )?(tidework .*)")


def commands_of(text: str) -> list[str]:
    blocks = (body for kind, body in BLOCK.findall(text) if kind in ("sh", "console"))
    lines = (line for block in blocks for line in block.replace("\\\n", " ").splitlines())
    found = [match[1] for line in lines if (match := COMMAND.match(line))]
    return found + re.findall(r"`(tidework [^`\n]+)`", BLOCK.sub("", text))


def refusal(line: str) -> str:
    """Why it is refused; a command that is only named lacks arguments, which is no fault."""
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = root
    while isinstance(command, click.Group) and words:
        known = command.get_command(click.Context(command), words[0])
        if known is None:
            if words[0].startswith("-"):
                break  # options of the group itself
            return f"{line}: No such command"
        command, words = known, words[1:]
    try:
        command.make_context("tidework", words)
    except (click.MissingParameter, click.exceptions.NoArgsIsHelpError):
        return ""
    except click.UsageError as error:
        return f"{line}: {error.format_message()}"
    return ""


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_are_taken(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")

    assert [fault for line in commands_of(text) if (fault := refusal(line))] == []


def test_the_pages_have_commands_and_a_wrong_one_is_found() -> None:
    assert len(commands_of((ROOT / "docs/getting-started.md").read_text("utf-8"))) > 10
    assert "unexpected extra argument" in refusal("tidework dead list reports")
    assert "No such" in refusal("tidework queue stop emails")
