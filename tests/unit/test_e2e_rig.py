"""The parts of the end-to-end rig without a cluster: options, commands, waiting, capabilities."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.e2e.offline import runc_bounded
from tests.e2e.rig.commands import CommandError, run
from tests.e2e.rig.options import RigError, read_options
from tests.e2e.rig.waiting import wait_until


def test_nothing_set_means_a_cluster_of_our_own_found_out_about(tmp_path: Path) -> None:
    options = read_options({"HOME": str(tmp_path)})

    assert options.cluster == "tidework-e2e"
    assert (options.existing, options.offline, options.keep) == (False, None, False)
    assert options.cache == tmp_path / ".cache/tidework-e2e"


def test_every_variable_is_read(tmp_path: Path) -> None:
    config = tmp_path / "kind.yaml"
    config.touch()

    options = read_options(
        {
            "E2E_CLUSTER": "mine",
            "E2E_NODE_IMAGE": "node:1",
            "E2E_KIND_CONFIG": str(config),
            "E2E_EXISTING": "1",
            "E2E_REGISTRY": "somewhere/ours/",
            "E2E_OFFLINE": "0",
            "KEEP": "1",
            "E2E_CACHE": str(tmp_path),
        }
    )

    assert (options.cluster, options.node_image, options.kind_config) == ("mine", "node:1", config)
    assert (options.existing, options.offline, options.keep) == (True, False, True)
    assert (options.registry, options.cache) == ("somewhere/ours", tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("E2E_CLUSTER", "Mine"),
        ("E2E_CLUSTER", "../x"),
        ("E2E_KIND_CONFIG", "/nowhere/kind.yaml"),
        ("E2E_OFFLINE", "yes"),
        ("KEEP", "true"),
    ],
)
def test_a_bad_value_is_named(name: str, value: str) -> None:
    with pytest.raises(RigError, match=f"{name}={value}"):
        read_options({name: value})


def python(program: str, given: str | None = None) -> str:
    return run([sys.executable, "-c", program], environment=os.environ, within=30, input=given)


def test_a_command_gets_its_input_and_gives_its_output() -> None:
    assert python("print(input() * 2)", "ab") == "abab\n"


def test_a_command_that_fails_shows_what_it_said() -> None:
    with pytest.raises(CommandError, match=r"exited 3\nout of paper$"):
        python("import sys; print('out of paper', file=sys.stderr); sys.exit(3)")


def test_a_command_that_is_not_there_is_an_error_too() -> None:
    with pytest.raises(CommandError, match="no-such-program"):
        run(["no-such-program"], environment=os.environ, within=5)


def test_a_command_ends_at_its_deadline_with_what_it_started() -> None:
    # The shell's child holds the pipes: if it lived on, this would wait for it.
    with pytest.raises(CommandError, match=r"took longer than 0\.2 s"):
        run(["sh", "-c", "sleep 50 & wait"], environment=os.environ, within=0.2)


def test_waiting_returns_what_the_condition_returned() -> None:
    seen = iter(
        [None, AssertionError("not yet"), CommandError(["kubectl"], "exited 1", ""), "there"]
    )

    def condition() -> object:
        found = next(seen)
        if isinstance(found, Exception):
            raise found
        return found

    assert wait_until(condition, within=30, describe="it is there") == "there"


def test_waiting_in_vain_tells_for_what_and_what_was_seen() -> None:
    with pytest.raises(AssertionError, match=r"the pod is gone. Last seen: \[\]"):
        wait_until(list, within=0, describe="the pod is gone")


@pytest.mark.parametrize("nested", [True, False])
def test_capabilities_outside_the_bounding_set_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nested: bool
) -> None:
    monkeypatch.setattr(runc_bounded, "available", lambda: {"CAP_KILL"})
    process = {"capabilities": {"bounding": ["CAP_KILL", "CAP_BPF"]}, "oomScoreAdj": -999}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"process": process} if nested else process))

    runc_bounded.bound(path)

    content = json.loads(path.read_text())
    assert (content["process"] if nested else content) == {
        "capabilities": {"bounding": ["CAP_KILL"]},
        "oomScoreAdj": 0,
    }


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["--root", "/r", "create", "--bundle", "/b", "id"], Path("/b/config.json")),
        (["run", "id"], Path("config.json")),
        (["exec", "--process", "/p.json", "id"], Path("/p.json")),
        (["exec", "id", "sh"], None),
        (["delete", "id"], None),
    ],
)
def test_the_document_is_found(arguments: list[str], path: Path | None) -> None:
    assert runc_bounded.document(arguments) == path
