"""The numbers of a source file, and the reasons for having none."""

from __future__ import annotations

import pytest
from stdlib_index.measuring import Measurement, UnparsableError, measure_source

SOURCE = b'''"""A module."""
import x

class Shown:
    """A class."""
    def method(self): "Documented."
    async def other(self): ...
    def _private(self): ...

class _Hidden:
    def method(self): "Not public."

if x:
    def function():
        def inner(): "Not seen from outside."
else:
    try:
        pass
    except OSError:
        def fallback(): "Documented."
'''


def test_everything_is_counted_and_docstrings_are_asked_of_what_is_public() -> None:
    found = measure_source("x.py", SOURCE)

    # public: the module, Shown, method, other, function, fallback
    assert found == Measurement(lines=20, functions=7, classes=2, documentable=6, documented=4)


@pytest.mark.parametrize(("source", "lines"), [(b"", 0), (b"x = 1", 1), (b"x = 1\r\ny = 2\r\n", 2)])
def test_lines(source: bytes, lines: int) -> None:
    assert measure_source("x.py", source).lines == lines


def test_an_empty_module_needs_no_docstring() -> None:
    assert measure_source("x.py", b"# nothing\n").documentable == 0


def test_a_declared_encoding_is_obeyed() -> None:
    source = '# coding: latin-1\n"""Größe."""\n'.encode("latin-1")

    assert measure_source("x.py", source).documented == 1


def test_warnings_of_the_parser_are_no_concern() -> None:
    assert measure_source("x.py", b"x = '\\d'\nassert (x, 'always')\n").lines == 2


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"x = 1\ndef (:\n", "a/x.py:2: invalid syntax"),
        (b"if x:\n    y\n  z\n", "a/x.py:3: IndentationError: unindent does not match"),
        (b"x = 1\n\ny = '\0'\n", "a/x.py:3: source code string cannot contain null bytes"),
        (b"# coding: uft-8\nx = 1\n", "a/x.py:1: unknown encoding: uft-8"),
        (b"# coding: utf8\n# 1\n# 2\n# \xe9\n", "a/x.py:4: 'utf-8' codec can't decode byte 0xe9"),
        (b"-" * 200_000 + b"1", "a/x.py:1: "),
    ],
)
def test_what_does_not_parse_is_named_with_file_line_and_reason(
    source: bytes, expected: str
) -> None:
    with pytest.raises(UnparsableError) as caught:
        measure_source("a/x.py", source)

    assert str(caught.value).startswith(expected)
    assert len(str(caught.value)) > len("a/x.py:1: ")
