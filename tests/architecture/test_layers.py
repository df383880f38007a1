"""The import contracts catch what they are there for, through `make check` itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.planted import make, make_copy

# path of the module below worker/src or operator/src, line to append, what the report names
OFFENCES = [
    pytest.param(
        "worker/src/tidework/model/retry.py",
        "import redis",
        "tidework.model.retry -> redis",
        id="library past its door",
    ),
    pytest.param(
        "worker/src/tidework/broker/broker.py",
        "import tidework.client",
        "tidework.broker.broker -> tidework.client",
        id="layer above",
    ),
    pytest.param(
        "worker/src/tidework/model/retry.py",
        "import kubernetes",
        "tidework.model.retry -> kubernetes",
        id="cluster in the core",
    ),
    pytest.param(
        "worker/src/tidework/errors.py",
        "import croniter",
        "tidework.errors -> croniter",
        id="cron library past its door",
    ),
    pytest.param(
        "operator/src/tidework_operator/settings.py",
        "import kopf",
        "tidework_operator.settings -> kopf",
        id="kopf outside the handlers",
    ),
    pytest.param(
        "operator/src/tidework_operator/settings.py",
        "import tidework_operator.__main__",
        "tidework_operator.settings -> tidework_operator.__main__",
        id="layer above in the operator",
    ),
    pytest.param(
        "worker/src/tidework/attic.py", '"""In no layer."""', "tidework.attic", id="unlisted module"
    ),
    pytest.param(
        "operator/src/tidework_operator/attic.py",
        '"""In no layer."""',
        "tidework_operator.attic",
        id="unlisted module in the operator",
    ),
]


def test_the_tree_as_it_is_keeps_every_contract(tmp_path: Path) -> None:
    layers = make(make_copy(tmp_path), "layers")

    assert layers.returncode == 0, layers.stdout
    assert "0 broken" in layers.stdout


@pytest.mark.parametrize(("path", "line", "report"), OFFENCES)
def test_make_check_fails_and_names_the_offender(
    tmp_path: Path, path: str, line: str, report: str
) -> None:
    root = make_copy(tmp_path)
    with (root / path).open("a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")

    check = make(root, "check")

    assert check.returncode != 0
    assert report in check.stdout, check.stdout
    assert "layers]" in check.stdout, "make check must stop at the layers"
