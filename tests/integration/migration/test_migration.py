"""What was taken over runs: each job of a crontab, and the command of a CronJob, under dev."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.dev_process import DevProcess
from tidework import Client, JobState, Settings

DATA = Path(__file__).parents[2] / "data/migration"


@pytest.fixture
def started() -> Iterator[list[DevProcess]]:
    running: list[DevProcess] = []
    yield running
    for dev in running:
        dev.end()


def tidework(module: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("TIDEWORK_")},
    )
    assert "Traceback" not in ended.stderr
    return ended.stdout + ended.stderr


def run_all(dev: DevProcess, queue: str, names: list[str]) -> None:
    """Run each CronTask by hand, and wait for the end of its job."""
    url = dev.wait_for("started")["redis_url"]
    client = Client(Settings(redis_url=url))
    try:
        for name in names:
            printed = tidework("tidework", "cron", "run", name, "--redis-url", url)
            job = printed.split()[-1]
            client.result_sync(job, queue=queue, timeout=40)
            assert client.get_sync(job, queue=queue).state is JobState.SUCCEEDED
    finally:
        client.close_sync()


@pytest.mark.timeout(180)
def test_a_crontab_runs(tmp_path: Path, started: list[DevProcess]) -> None:
    out = tmp_path / "out"
    crontab = tmp_path / "shop.crontab"
    crontab.write_text((DATA / "shop.crontab").read_text().replace("= .", f"= {tmp_path}"))
    said = tidework("tidework", "cron", "import", str(crontab), "--output", str(out))
    assert "6 CronTask(s)" in said
    assert "left out: @reboot" in said
    dev = DevProcess(out, "tidework.yaml")
    started.append(dev)

    documents = list(yaml.safe_load_all((out / "tidework.yaml").read_text()))
    names = [found["metadata"]["name"] for found in documents if found["kind"] == "CronTask"]
    run_all(dev, "crontab", names)

    assert "php artisan schedule:run" in (tmp_path / "schedule.log").read_text()
    assert "tar.gz" in (tmp_path / "backup.log").read_text()
    assert (tmp_path / "mail.txt").read_text() == "Dear all,\nthe quarter is over.\n"
    assert (tmp_path / "pruned").exists()
    assert (tmp_path / "index.txt").read_text() == "reindexed"
    assert (tmp_path / "rotated.txt").read_text() == "rotated\n"


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("name", "queue", "file", "text"),
    [
        ("hello", "hello", "hello.txt", "\nHello from the Kubernetes cluster\n"),
        ("backup", "database-backup", "dump.txt", "dumped shop for /here\n"),
    ],
)
def test_a_cronjob_runs(
    name: str, queue: str, file: str, text: str, tmp_path: Path, started: list[DevProcess]
) -> None:
    out = tmp_path / "out"
    document = yaml.safe_load((DATA / f"cronjob-{name}.yaml").read_text())
    # The container's variables, of which the Secret's is not here.
    container = document["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    known = [each for each in container.get("env", []) if "value" in each]
    container["env"] = [
        *known,
        {"name": "FOLDER", "value": str(tmp_path)},
        {"name": "HOME", "value": "/here"},
    ]
    document["metadata"]["namespace"] = "default"
    (tmp_path / "cronjob.yaml").write_text(yaml.safe_dump(document))
    cronjob = str(tmp_path / "cronjob.yaml")
    plugin = "tidework_operator.plugin"
    said = tidework(plugin, "migrate-cronjob", "--file", cronjob, "--output", str(out))
    assert "cronjob_tasks.py" in said
    dev = DevProcess(out, "tidework.yaml")
    started.append(dev)

    run_all(dev, queue, [queue])

    assert (tmp_path / file).read_text().endswith(text)
