"""The fields of log lines: every name is one of tidework.logs.FIELDS, and none is left out.

Every line names its event, one of tidework.log_events.EVENTS; each of these is logged somewhere.

Looked at are the calls of a module's ``logger``. Their ``extra`` has to be readable where it
stands: a dict of literal names, ``|`` of several, a variable of the same function, an attribute
that the file sets, or the result of a function of the product. An event is a literal, one of two
(``a if b else c``), a variable of the same function, or a column of a table of the file.

What the text of a line names (a queue, a job, a task, a CronTask) is a field as well, so that
people can search by it; a line with a job's id has its task and queue too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import Finding, Source, run, sources
from tidework.log_events import EVENTS
from tidework.logs import FIELDS

METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
NAMED = {
    "queue": "queue",
    "job": "job_id",
    "task": "task",
    "CronTask": "crontask",
    "TaskQueue": "queue",
}
IN_TEXT = re.compile(rf"\b({'|'.join(NAMED)}) %")
PRODUCT = ("worker/src/", "operator/src/")
TABLE = "worker/src/tidework/log_events.py"
# Run within a job, whose fields every line gets (logs.job_fields).
WITHIN_A_JOB = frozenset({"soft_timeout.py", "once_per_key.py"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


class UnreadableError(Exception):
    """The names cannot be told from the source."""


def check(root: Path) -> list[Finding]:
    """Every line of the log with a field of another name, or without one that it speaks of."""
    files = [s for s in sources(root, ".py") if s.path.startswith(PRODUCT)]
    trees = {source: ast.parse(source.text) for source in files}
    functions: dict[str, list[Function]] = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                functions.setdefault(node.name, []).append(node)
    found: list[Finding] = []
    logged: set[str] = set()
    for source, tree in trees.items():
        found += _check_file(source, tree, functions, logged)
    if any(source.path == TABLE for source in files):
        for event in sorted(EVENTS.keys() - logged):
            found.append(Finding(TABLE, 1, f"no line of the log is the event {event!r}"))
    return found


def _check_file(
    source: Source,
    tree: ast.Module,
    functions: dict[str, list[Function]],
    logged: set[str],
) -> Iterator[Finding]:
    """``logged`` gets the events of the file."""
    for scope in (node for node in ast.walk(tree) if isinstance(node, Function)):
        for call in _calls(scope):
            extra = next((each.value for each in call.keywords if each.arg == "extra"), None)
            reader = _Reader(tree, scope, functions)
            try:
                names = set() if extra is None else reader.names(extra)
            except UnreadableError as error:
                text = f"the names in extra={error} cannot be read: write them where the line is"
                yield Finding(source.path, call.lineno, text)
                continue
            logged |= reader.events
            for event in sorted(reader.events - EVENTS.keys()):
                text = f"event {event!r} is not in tidework.log_events.EVENTS"
                yield Finding(source.path, call.lineno, text)
            if "event" not in names:
                yield Finding(source.path, call.lineno, "the line names no event")
            for name in sorted(names - set(FIELDS)):
                text = f"field {name!r} is not in tidework.logs.FIELDS"
                yield Finding(source.path, call.lineno, text)
            if Path(source.path).name not in WITHIN_A_JOB:
                of_a_job = {"job_id", "task", "queue"} if "job_id" in names else set()
                for said in sorted((_said(call) | of_a_job) - names):
                    text = f"the line speaks of it, but has no field {said!r}"
                    yield Finding(source.path, call.lineno, text)


def _calls(scope: Function) -> Iterator[ast.Call]:
    """Calls of the logger in a function; those of functions within it are theirs."""
    todo: list[ast.AST] = list(scope.body)
    while todo:
        node = todo.pop()
        if isinstance(node, Function | ast.ClassDef):
            continue
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="logger"), attr=name)):
                if name in METHODS:
                    yield node
        todo += ast.iter_child_nodes(node)


def _said(call: ast.Call) -> set[str]:
    """The fields that the text of a line calls for."""
    texts = [each.value for each in call.args[:2] if isinstance(each, ast.Constant)]
    return {
        NAMED[found] for text in texts if isinstance(text, str) for found in IN_TEXT.findall(text)
    }


class _Reader:
    """Reads the names of a dict, and the values of ``event``, from what makes it."""

    def __init__(
        self, tree: ast.Module, scope: Function, functions: dict[str, list[Function]]
    ) -> None:
        self._tree = tree
        self._scope = scope
        self._functions = functions
        self.events: set[str] = set()

    def names(self, node: ast.expr) -> set[str]:
        match node:
            case ast.Dict():
                return self._of_dict(node)
            case ast.DictComp(key=ast.Name(id=key), generators=[ast.comprehension(iter=values)]):
                return self._of_comprehension(key, values)
            case ast.BinOp(op=ast.BitOr()):
                return self.names(node.left) | self.names(node.right)
            case ast.IfExp():
                return self.names(node.body) | self.names(node.orelse)
            case ast.Name():
                return self._assigned(self._scope, ast.unparse(node))
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                return self._returned(name)
            case ast.Attribute(value=ast.Name(id="self")):
                return self._assigned(self._tree, ast.unparse(node))
            case ast.Attribute(attr=name):
                return self._returned(name)
        raise UnreadableError(ast.unparse(node))

    def _of_dict(self, node: ast.Dict) -> set[str]:
        found: set[str] = set()
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found |= self.names(value)
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                found.add(key.value)
                self._note_event(key.value, value)
            else:
                raise UnreadableError(ast.unparse(node))
        return found

    def _note_event(self, key: str, value: ast.expr) -> None:
        if key == "event":
            self.events |= set(self._words(value))

    def _words(self, node: ast.expr) -> Iterator[str]:
        """What an expression may be, where it is one of some literals."""
        match node:
            case ast.Constant(value=str(word)):
                yield word
            case ast.IfExp():
                yield from self._words(node.body)
                yield from self._words(node.orelse)
            case ast.Name(id=name):
                given = self._values(name) or self._column(name)
                if not given:
                    raise UnreadableError(name)
                for value in given:
                    yield from self._words(value)
            case _:
                raise UnreadableError(ast.unparse(node))

    def _column(self, name: str) -> list[ast.expr]:
        """The values of ``a, name = TABLE[key]``, where the file has a dict of tuples TABLE."""
        found: list[ast.expr] = []
        for node in ast.walk(self._scope):
            match node:
                case ast.Assign(
                    targets=[ast.Tuple(elts=targets)],
                    value=ast.Subscript(value=ast.Name(id=table)),
                ):
                    names = [ast.unparse(target) for target in targets]
                    if name in names:
                        rows = [each for each in self._rows(table) if isinstance(each, ast.Tuple)]
                        found += [row.elts[names.index(name)] for row in rows]
        return found

    def _rows(self, table: str) -> list[ast.expr]:
        return [
            row
            for node in self._tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == table
            if isinstance(node.value, ast.Dict)
            for row in node.value.values
        ]

    def _of_comprehension(self, key: str, values: ast.expr) -> set[str]:
        """``{name: ... for name in names}``, where ``names`` are literals."""
        given = [values] if not isinstance(values, ast.Name) else self._values(values.id)
        found: set[str] = set()
        for each in given:
            if not isinstance(each, ast.Tuple | ast.List):
                raise UnreadableError(key)
            constants = [item.value for item in each.elts if isinstance(item, ast.Constant)]
            found |= {value for value in constants if isinstance(value, str)}
        return found

    def _values(self, name: str) -> list[ast.expr]:
        return [
            node.value
            for node in ast.walk(self._scope)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        ]

    def _assigned(self, place: ast.AST, name: str) -> set[str]:
        """What is put into a variable or attribute, by any way."""
        found: set[str] = set()
        seen = False
        for node in ast.walk(place):
            match node:
                case ast.Assign(targets=[ast.Subscript() as target], value=value):
                    if ast.unparse(target.value) == name:
                        key = target.slice
                        if not isinstance(key, ast.Constant):
                            raise UnreadableError(ast.unparse(target))
                        found.add(str(key.value))
                        self._note_event(str(key.value), value)
                case ast.Assign(targets=[target], value=value) | (
                    ast.AnnAssign(target=target, value=ast.expr() as value)
                    | ast.AugAssign(target=target, value=value)
                ):
                    if ast.unparse(target) == name:
                        seen = True
                        found |= self.names(value)
        if not seen:
            raise UnreadableError(name)
        return found

    def _returned(self, name: str) -> set[str]:
        """What the functions of this name return: those of the file if it has any, else all."""
        own = [each for each in ast.walk(self._tree) if isinstance(each, Function)]
        chosen = [each for each in own if each.name == name] or self._functions.get(name, [])
        if not chosen:
            raise UnreadableError(name)
        found: set[str] = set()
        for function in chosen:
            reader = _Reader(self._tree, function, self._functions)
            reader.events = self.events
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    found |= reader.names(node.value)
        return found


if __name__ == "__main__":
    run(
        check,
        "One name per idea: see FIELDS in worker/src/tidework/logs.py, EVENTS in log_events.py.",
    )
