"""Fixtures of the end-to-end tests: one cluster and one build of the images for the whole run.

A failed test shows the cluster; the summary sets each file's time against what it expects.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.commands import CommandError
from tests.e2e.rig.dump import dump
from tests.e2e.rig.images import Images, build_images, load_images
from tests.e2e.rig.kind import open_cluster
from tests.e2e.rig.machine import PublicImages, prepare_machine
from tests.e2e.rig.machine import public_images as find_public_images
from tests.e2e.rig.options import Options, RigError, read_options
from tests.e2e.support.errands import Errands, bring_errands
from tests.e2e.support.installation import Installation
from tests.e2e.support.workspace import Workspace, open_workspace

HERE = Path(__file__).parent


class Times:
    """Seconds by file; what the rig took for the cluster and the images is kept apart."""

    def __init__(self) -> None:
        self.expected: dict[str, float] = {}
        self.files: dict[str, float] = defaultdict(float)
        self.rig = 0.0
        self._rig_before = 0.0

    def add(self, file: str, seconds: float) -> None:
        """Count one phase of one test."""
        self.files[file] += seconds - (self.rig - self._rig_before)
        self._rig_before = self.rig


TIMES = pytest.StashKey[Times]()
FAILED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TIMES] = Times()
    config.addinivalue_line(
        "markers",
        "expected_seconds(n): what the tests of a file take together, the rig not counted",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = [item for item in items if HERE in item.path.parents]
    for item in here:
        if hasattr(config, "workerinput"):
            item.add_marker(pytest.mark.skip("they share one cluster: run tests/e2e without -n"))
        marker = item.get_closest_marker("expected_seconds")
        seconds = float(marker.args[0]) if marker else 60.0
        config.stash[TIMES].expected[item.path.name] = seconds
        own = item.get_closest_marker("timeout")
        bound = own.args[0] if own else max(120.0, 3 * seconds)
        # Without the fixtures: the first makes the cluster. Each of their steps has a bound.
        item.add_marker(pytest.mark.timeout(bound, func_only=True), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.config.stash[TIMES].add(item.path.name, report.duration)
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster):
        item.stash[FAILED] = True
        report.sections.append(("the cluster", dump(cluster, cluster.namespaces)))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    times = terminalreporter.config.stash[TIMES]
    if not times.files:
        return
    terminalreporter.section("seconds (expected)")
    terminalreporter.write_line(f"{times.rig:6.0f}          cluster and images")
    for file, seconds in times.files.items():
        terminalreporter.write_line(f"{seconds:6.0f} ({times.expected[file]:5.0f})  {file}")


@contextmanager
def visibly(config: pytest.Config) -> Iterator[None]:
    """The rig at work: progress is shown, time is counted, and without a rig there are no tests."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    begin = time.monotonic()
    try:
        with capture.global_and_fixture_disabled():
            yield
    except (RigError, CommandError) as error:
        pytest.exit(str(error), returncode=1)
    finally:
        config.stash[TIMES].rig += time.monotonic() - begin


@pytest.fixture(scope="session")
def options(request: pytest.FixtureRequest) -> Options:
    """What the environment says about the rig."""
    with visibly(request.config):
        return read_options(os.environ)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, options: Options) -> Iterator[Cluster]:
    """A cluster that answers: made, found, or given."""
    with ExitStack() as stack:
        with visibly(request.config):
            found = stack.enter_context(open_cluster(prepare_machine(options), options))
        yield found
        with visibly(request.config):
            stack.close()


@pytest.fixture(scope="session")
def public_images(
    request: pytest.FixtureRequest, cluster: Cluster, options: Options
) -> PublicImages:
    """Official images, by names that pods of this cluster may use."""
    with visibly(request.config):
        images = find_public_images(cluster.machine)
        if cluster.machine.offline:
            loaded = load_images(cluster, [images.python, images.redis], options.registry)
            images = PublicImages(*loaded)
    return images


@pytest.fixture(scope="session")
def images(request: pytest.FixtureRequest, cluster: Cluster, options: Options) -> Images:
    """The images of this tree, built and loaded."""
    with visibly(request.config):
        python = find_public_images(cluster.machine).python
        with cluster.machine.alone():
            built = build_images(cluster.machine, python)
            references = [built.operator, built.worker, built.example]
            return Images(*load_images(cluster, references, options.registry))


@pytest.fixture
def namespace(request: pytest.FixtureRequest, cluster: Cluster, options: Options) -> Iterator[str]:
    """A restricted namespace of this test alone; with KEEP=1 that of a failed test stays."""
    slug = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")

    def keep() -> bool:
        return options.keep and request.node.stash.get(FAILED, False)

    with cluster.namespace(f"{slug}-{secrets.token_hex(2)}", keep=keep) as name:
        yield name


@pytest.fixture(scope="session")
def errands(
    request: pytest.FixtureRequest, cluster: Cluster, images: Images, options: Options
) -> Errands:
    """The application that the scenarios run, in two editions."""
    with visibly(request.config):
        return bring_errands(cluster, images.worker, options.registry)


@pytest.fixture(scope="session")
def chart(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    images: Images,
    public_images: PublicImages,
    options: Options,
) -> Iterator[Installation]:
    """The chart, installed or not: for tests that install or remove it themselves."""
    found = Installation(cluster, images, public_images)
    yield found
    if not options.keep:
        with visibly(request.config):
            found.remove()


@pytest.fixture
def installation(request: pytest.FixtureRequest, chart: Installation) -> Installation:
    """The chart, installed once for all tests that ask for it."""
    with visibly(request.config):
        chart.ensure()
    return chart


@pytest.fixture
def workspace(installation: Installation, namespace: str) -> Iterator[Workspace]:
    """The test's namespace, with workers that may use the installation's Redis."""
    with open_workspace(installation, namespace) as opened:
        yield opened
