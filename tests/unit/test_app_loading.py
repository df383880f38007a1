"""An app that cannot be used: what the error says, where, and how to mend it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tidework.app_loading import load_app
from tidework.errors import AppImportError


def fault_of(target: str) -> str:
    with pytest.raises(AppImportError) as refused:
        load_app(target)
    return str(refused.value)


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ("shop/tasks.py", "name a module: shop.tasks"),
        ("./shop/tasks", "name a module: shop.tasks"),
        ("shop/tasks.py:app", "name a module: shop.tasks:app"),
        ("tasks.py", "name a module: tasks"),
        ("/srv/shop/tasks.py", "in the folder that holds it"),
        ("../shop/tasks.py", "in the folder that holds it"),
    ],
)
def test_a_file_in_place_of_a_module_is_told(target: str, remedy: str) -> None:
    assert fault_of(target).endswith(remedy)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("app.task(timeout=-1)(print)", "the timeout of -1 s has to lie between"),
        ("app.task(timeout='5m')(print)", "task print: timeout='5m': give seconds"),
        ("app.task(priority='high')(print)", "priority 'high': use 0 (first) to 9"),
        ("app.nothing", "no attribute 'nothing'"),
        (
            "exec('def f(x: \"Nothing\"): ...'); app.task(f)",
            "'f': an annotation cannot be read: name 'N",
        ),
        ("app.task(max_attempts='many')(print)", "max_attempts='many': give a whole number"),
        ("app.task(nosuch=1)(print)", "unexpected keyword argument 'nosuch'"),
        ("import nothing_here", "No module named 'nothing_here'"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_the_place_that_is_told_is_one_of_the_application(
    line: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""
        from tidework import Tidework

        app = Tidework("shop")
        {line}
        """
    (tmp_path / "wrong_declaration.py").write_text(textwrap.dedent(text).lstrip())
    monkeypatch.syspath_prepend(tmp_path)

    fault = fault_of("wrong_declaration")

    assert told in fault
    assert f"(at {tmp_path / 'wrong_declaration.py'}:4)" in fault
