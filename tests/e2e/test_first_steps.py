"""First steps of docs/kubernetes.md, word for word, on a cluster without anything of Tidework."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.images import ROOT
from tests.e2e.rig.machine import PublicImages
from tests.e2e.rig.waiting import wait_until
from tests.e2e.support.first_steps import as_on_a_fresh_machine, commands_of, page
from tests.e2e.support.installation import NAMESPACE, Installation, remove_everything

pytestmark = pytest.mark.expected_seconds(150)

SECTION = "First steps on kind"
SHOP = "shop"


@pytest.fixture
def bare_cluster(
    chart: Installation, cluster: Cluster, public_images: PublicImages
) -> Iterator[Cluster]:
    """Without the chart, before and after; a failed test's report shows what was made."""
    if cluster.kind_name is None:
        pytest.skip("the section is about a kind cluster")
    chart.remove()
    remove_everything(cluster, SHOP)
    cluster.namespaces += [NAMESPACE, SHOP]
    try:
        yield cluster
    finally:
        cluster.namespaces = [name for name in cluster.namespaces if name not in (NAMESPACE, SHOP)]
        remove_everything(cluster, SHOP)


def test_the_section_works_as_it_is_written(
    bare_cluster: Cluster, public_images: PublicImages, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    # a reader puts what the command before printed in the place of ID
    commands = "\n".join(commands_of(SECTION, page())).replace(" ID ", f' "$(tail -n 1 {output})" ')
    script = f"set -euxo pipefail\nexec >{output}\n{commands}"
    bash = shutil.which("bash")
    assert bash is not None
    with as_on_a_fresh_machine(bare_cluster, public_images, tmp_path) as path:
        bare_cluster.run("env", f"PATH={path}", bash, "-c", script, within=480, folder=ROOT)

    printed = output.read_text("utf-8")
    assert "taskqueue.tidework.dev/emails" in printed
    assert "crontask.tidework.dev/greeting" in printed

    def last_result() -> bool:
        crontasks = bare_cluster.kubectl_json("get", "crontasks", "--namespace", SHOP)["items"]
        results = [found.get("status", {}).get("lastResult") for found in crontasks]
        assert results == ["succeeded"], crontasks
        return True

    wait_until(last_result, within=150, describe="the job of the page's CronTask has succeeded")
    queues = bare_cluster.kubectl("get", "taskqueues", "--namespace", SHOP)
    assert "emails" in queues
