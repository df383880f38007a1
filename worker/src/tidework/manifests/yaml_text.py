"""YAML text into JSON data that remembers its lines. The only importer of yaml.

Text is resolved as Kubernetes resolves it, not as PyYAML does: a time stays text, and so does 12:30
(which PyYAML reads as 750). What is no JSON is refused: keys that are not text, NaN, foreign tags.
Repeated keys are refused, merge keys (``<<``) are served. The size of what aliases unfold to is
bounded. A fault does not end the reading as long as the text is still YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from tidework.manifests.faults import Fault, FieldPath

MAX_VALUES = 200_000
MAX_NESTING = 100

_NULL, _BOOL, _INT, _FLOAT, _STR, _SEQ, _MAP, _MERGE = (
    f"tag:yaml.org,2002:{name}"
    for name in ("null", "bool", "int", "float", "str", "seq", "map", "merge")
)
_INTEGER = r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)"
_NUMBER = r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_NO_NUMBER = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_TRUE = ("true", "yes", "on")


class _Loader(yaml.SafeLoader):
    """Composes nodes; resolves plain scalars by the rules below alone."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own attribute


for _tag, _pattern, _first in (
    (_NULL, r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (_BOOL, r"(?i:true|false|yes|no|on|off)", list("tTfFyYnNoO")),
    (_INT, _INTEGER, list("-+0123456789")),
    (_FLOAT, f"{_NUMBER}|{_NO_NUMBER}", list("-+.0123456789")),
    (_MERGE, "<<", ["<"]),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), _first)


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document: its data, and the faults that kept parts of it out of the data.

    is_cut: a bound was passed; what came after it is not in the data
    """

    data: Any
    faults: tuple[Fault, ...]
    is_cut: bool
    _node: yaml.Node = field(repr=False)

    def line_of(self, path: FieldPath) -> int:
        """Line, from 1, of the key or entry at ``path``, or of the nearest part around it."""
        node, line = self._node, self._node.start_mark.line
        for part in path:
            found = _entry(node, part)
            if found is None:
                break
            at, node = found
            line = at.start_mark.line
        return int(line) + 1


class YamlError(Exception):
    """The text is no YAML from ``line`` on (None: as a whole)."""

    def __init__(self, reason: str, line: int | None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason)


def read_documents(text: str) -> Iterator[YamlDocument]:
    """The documents of a file, empty ones left out. Raises YamlError where the text is no YAML."""
    try:
        for node in yaml.compose_all(text, Loader=_Loader):
            if node.tag != _NULL:
                building = _Building()
                data = building.value(node, ())
                yield YamlDocument(data, tuple(building.faults), building.is_cut, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        raise YamlError(f"not valid YAML: {reason}", mark.line + 1 if mark else None) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"not valid YAML: {error.reason}", line) from error
    except RecursionError as error:
        raise YamlError("not readable: nested too deeply", None) from error


class _RefusedError(Exception):
    """A value that cannot be part of the data."""


class _Building:
    """Turns nodes into data and gathers the faults on the way."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._values = 0
        self.is_cut = False

    def value(self, node: yaml.Node, path: FieldPath) -> Any:
        self._values += 1
        if self.is_cut or self._is_out_of_bounds(path):
            return None
        try:
            if isinstance(node, yaml.MappingNode) and node.tag == _MAP:
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode) and node.tag == _SEQ:
                return [self.value(entry, (*path, at)) for at, entry in enumerate(node.value)]
            if isinstance(node, yaml.ScalarNode):
                return _scalar(node)
            raise _RefusedError(f"tag {node.tag} is not JSON data")
        except _RefusedError as error:
            self.faults.append(Fault(path, str(error)))
            return None

    def _is_out_of_bounds(self, path: FieldPath) -> bool:
        """Say so once, and stop: what follows would only say the same."""
        if self._values > MAX_VALUES:
            reason = f"with its aliases this holds more than {MAX_VALUES} values"
        elif len(path) > MAX_NESTING:
            reason = "nested too deeply, or an alias that holds itself"
        else:
            return False
        self.is_cut = True
        self.faults.append(Fault(path[:3], reason))
        return True

    def _mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        lines: dict[str, int] = {}
        merged: list[dict[str, Any]] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged += self._merged(value_node, path)
                continue
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _STR:
                shown = getattr(key_node, "value", "") if key_node.id == "scalar" else "this"
                self.faults.append(Fault(path, f"key {shown} is not text; put it in quotes"))
                continue
            key = _text(key_node.value)
            if key in found:
                fault = f"given twice, first in line {lines[key]}; keep one"
                self.faults.append(Fault((*path, key), fault))
                continue
            lines[key] = key_node.start_mark.line + 1
            found[key] = self.value(value_node, (*path, key))
        for source in merged:
            found = source | found
        return found

    def _merged(self, node: yaml.Node, path: FieldPath) -> list[dict[str, Any]]:
        """What ``<<`` brings in; of several sources the first one wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values = [self.value(source, (*path, "<<")) for source in sources]
        if not all(isinstance(value, dict) for value in values):
            raise _RefusedError("<< needs a mapping, or a list of mappings")
        return values


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.tag == _STR:
        return _text(text)
    if node.tag == _NULL:
        return None
    if node.tag == _BOOL:
        return text.casefold() in _TRUE
    if node.tag == _INT:
        return _integer(text)
    if node.tag == _FLOAT:
        return _number(text)
    raise _RefusedError(f"tag {node.tag} is not JSON data")


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _RefusedError("holds half of a surrogate pair, which is not a character") from error
    return text


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    if re.fullmatch(r"[-+]?0[0-7]+", digits):
        digits = digits.replace("0", "0o", 1)
    try:
        found = int(digits, 0)
    except ValueError as error:
        raise _RefusedError(f"{text[:40]} is not a whole number") from error
    if not -(2**63) <= found < 2**64:
        raise _RefusedError(
            f"{text[:40]} does not fit into 64 bits; put it in quotes if it is text"
        )
    return found


def _number(text: str) -> float:
    try:
        found = float(text.replace("_", ""))
    except ValueError as error:
        raise _RefusedError(f"{text[:40]} is not a number in JSON") from error
    if found in (float("inf"), float("-inf")):
        raise _RefusedError(f"{text[:40]} is not a number in JSON")
    return found


def _entry(node: yaml.Node, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The node to point at, and the node of the value, of one key or list place."""
    if isinstance(node, yaml.MappingNode):
        # From the end: of a repeated key it is the second that is at fault.
        for key, value in reversed(node.value):
            if key.value == part:
                return key, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None
