"""How scripts are composed: what one calls is in it, and S has what few calls need."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tidework.broker.redis.parts import REPLIES
from tidework.broker.scripts import load_script

FOLDER = files("tidework.broker").joinpath("scripts")
NAMES = sorted(entry.name[:-4] for entry in FOLDER.iterdir() if entry.name.endswith(".lua"))
NO_CODE = re.compile(r"--.*$|'[^'\n]*'", re.MULTILINE)
FUNCTION = re.compile(r"^local function (\w+)\(.*?^end$", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"(?<![\w.:])(S\.\w+|\w+)\(")
LOCAL = re.compile(r"\blocal function (\w+)\(")
LUA = {"tonumber", "ipairs", "pairs", "unpack", "type", "setmetatable", "rawget"}
TABLE = re.compile(r"\breturn \{|\blocal found = \{")
"""What a script may return."""
WORDS = {"if", "and", "or", "not", "return", "function", "then", "in", "while", "elseif", "for"}
MADE_LATER = re.compile(r"^setmetatable\(S,.*?\n(.*)^S\..*?^end\}\)$", re.MULTILINE | re.DOTALL)


def functions_of(name: str) -> dict[str, str]:
    """Name to text; ``''``: what lies outside of functions. Those that are made later: S.name."""
    text = NO_CODE.sub("", load_script(name).text)
    later = MADE_LATER.search(text)
    found = {}
    if later is not None:
        own = {made[1]: made[0] for made in FUNCTION.finditer(later[1])}
        found = {f"S.{each}": body for each, body in own.items()}
        # Among themselves they go by their own names.
        found |= {each: body for each, body in own.items() if each not in found}
        text = text.replace(later[0], "")
    found |= {made[1]: made[0] for made in FUNCTION.finditer(text)}
    return found | {"": FUNCTION.sub("", text)}


def reached_in(name: str) -> set[str]:
    """The functions that a script can come to call; each is one that it is composed of."""
    functions = functions_of(name)
    reached, to_do = set[str](), {""}
    while to_do:
        each = to_do.pop()
        reached.add(each)
        body = functions[each]
        called = set(CALL.findall(body)) - set(LOCAL.findall(body)) - LUA - WORDS - {"flush"}
        assert called <= functions.keys(), f"in {each or 'its own part'}"
        to_do |= called - reached
    return reached


@pytest.mark.parametrize("name", NAMES)
def test_a_script_calls_only_what_it_is_composed_of(name: str) -> None:
    reached = reached_in(name)

    made_later = {each for each in functions_of(name) if each.startswith("S.")}
    assert not made_later or made_later & reached, "nothing of what is seldom needed is asked for"


@pytest.mark.parametrize("name", NAMES)
def test_a_script_that_counts_for_the_statistics_writes_it_down(name: str) -> None:
    reached = reached_in(name)

    assert ("tally" in reached) == ("write_tallies" in reached)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_seldom_needed_is_not_called_as_if_it_were_there(name: str) -> None:
    functions = functions_of(name)
    later = {each[2:] for each in functions if each.startswith("S.")}
    always = "".join(
        body for each, body in functions.items() if not each.startswith("S.") and each not in later
    )

    assert not later & set(CALL.findall(always))


def test_the_parts_of_replies_have_one_order() -> None:
    replies = {name: load_script(name).reply for name in NAMES}

    assert {name: parts for name, parts in replies.items() if parts} == REPLIES


@pytest.mark.parametrize("name", sorted(REPLIES))
def test_a_script_returns_as_many_parts_as_it_names(name: str) -> None:
    text = load_script(name).text
    tables = [items_of_table(text, place.end()) for place in TABLE.finditer(text)]

    assert len(REPLIES[name]) - ("..." in REPLIES[name]) in map(len, tables)


def items_of_table(text: str, start: int) -> list[str]:
    """What a table holds, from behind its brace on."""
    items, depth = [""], 0
    for letter in text[start:]:
        depth += (letter in "({[") - (letter in ")}]")
        if depth < 0:
            break
        if letter == "," and not depth:
            items.append("")
        else:
            items[-1] += letter
    return items


@pytest.mark.parametrize("name", NAMES)
def test_no_function_is_made_twice(name: str) -> None:
    made = re.findall(r"^local function (\w+)\(", load_script(name).text, re.MULTILINE)

    assert len(made) == len(set(made))
