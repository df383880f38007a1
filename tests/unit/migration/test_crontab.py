"""A crontab becomes CronTasks that fire when it did, or says where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidework.errors import ScheduleError
from tidework.manifests import CronTask, TaskQueue, parse_document, read_manifests
from tidework.migration.crontab import LEFT_OUT, CrontabOptions, take_over
from tidework.migration.crontab_lines import Entry, Unreadable, read_lines
from tidework.migration.crontab_time import converted
from tidework.migration.takeover import Takeover, write_files

DATA = Path(__file__).parents[2] / "data/migration"


def taken(text: str, **options: Any) -> Takeover:
    return take_over(text, "crontab", CrontabOptions(**options))


def only(text: str, **options: Any) -> tuple[dict[str, Any], tuple[str, ...], dict[str, Any]]:
    """Spec, remarks and command of the only job."""
    (found,) = taken(text, **options).taken
    command = {
        "argv": found.command.argv,
        "env": found.command.env,
        "stdin": found.command.stdin,
    }
    return found.document["spec"], found.remarks, command


def notes(text: str, **options: Any) -> list[str]:
    return [str(note) for note in taken(text, **options).notes]


@pytest.mark.parametrize("name", ["shop", "system"])
def test_real_crontabs_become_documents_that_are_taken(name: str, tmp_path: Path) -> None:
    text = (DATA / f"{name}.crontab").read_text()
    found = taken(text, namespace="shop", with_user=name == "system")
    write_files(found, tmp_path)

    manifests = read_manifests([tmp_path])

    (queue,) = manifests.queues
    assert isinstance(queue, TaskQueue)
    assert queue.spec.app == "crontab_tasks:app"
    jobs = [line for line in text.splitlines() if line[:1] in {"*", "@", *"0123456789"}]
    left_out = [note for note in found.notes if note.text.startswith(LEFT_OUT)]
    assert len(manifests.crontasks) == len(jobs) - len(left_out)
    compile((tmp_path / "crontab_tasks.py").read_text(), "crontab_tasks.py", "exec")


def test_names_are_those_of_the_programs() -> None:
    found = taken((DATA / "system.crontab").read_text(), with_user=True)
    assert [each.command.task for each in found.taken] == [
        "run-parts",
        "run-parts-2",
        "run-parts-3",
        "run-parts-4",
        "e2scrub-all-cron",
        "checkarray",
        "certbot",
        "sessionclean",
        "debian-sa1",
    ]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cd /srv/app && php artisan schedule:run", "artisan"),
        ("FOO=1 nice -n 10 /usr/sbin/tmpreaper 7d /tmp", "tmpreaper"),
        ("/opt/7zip/bin/7z a x.7z", "task-7z"),
        ("echo hello", "echo"),
        ("'unbalanced", "command"),
        ("/opt/" + "x" * 300, "x" * 52),
        ("% input alone", "command"),
    ],
)
def test_a_name_is_found_in_any_command(command: str, name: str) -> None:
    assert only(f"* * * * * {command}")[0]["task"] == name


def test_a_job_is_as_cron_ran_it() -> None:
    spec, remarks, command = only("30 2 * * 1-5 /opt/backup.sh --all", time_zone="Asia/Shanghai")

    assert spec == {
        "queue": "crontab",
        "task": "backup",
        "schedule": "30 2 * * 1-5",
        "timeZone": "Asia/Shanghai",
        "concurrencyPolicy": "Allow",
        "catchUp": "None",
        "maxAttempts": 1,
    }
    assert remarks == ("line 1: 30 2 * * 1-5 /opt/backup.sh --all",)
    assert command == {
        "argv": ("/bin/sh", "-c", "/opt/backup.sh --all"),
        "env": {},
        "stdin": "",
    }


def test_settings_hold_from_their_line_on() -> None:
    text = (
        "0 1 * * * a\n"
        "SHELL=/bin/bash\n"
        'PATH = "/opt/bin:/bin"\n'
        "CRON_TZ=Asia/Tokyo\n"
        "'EMPTY'=''\n"
        "0 2 * * * b\n"
        "SHELL=\n"
        "HOME=/srv\n"
        "0 3 * * * c\n"
    )
    first, second, third = taken(text, time_zone="UTC").taken
    assert first.command.env == {}
    assert first.document["spec"]["timeZone"] == "UTC"
    assert second.command.argv == ("/bin/bash", "-c", "b")
    assert second.command.env == {"PATH": "/opt/bin:/bin", "EMPTY": ""}
    assert second.document["spec"]["timeZone"] == "Asia/Tokyo"
    assert (third.command.argv[0], third.command.cwd) == ("/bin/sh", "/srv")


def test_what_is_mailed_or_run_later_or_as_another_is_told_once() -> None:
    text = "MAILTO=ops\nRANDOM_DELAY=30\n0 1 * * * root a\n0 2 * * * root b\n0 3 * * * www c\n"
    found = notes(text, with_user=True)
    assert [note.partition(": ")[0] for note in found] == ["line 3", "line 3", "line 3", "line 5"]
    assert "MAILTO=ops: nothing is mailed" in found[0]
    assert "RANDOM_DELAY=30 is not served" in found[1]
    assert "ran as user root" in found[2]
    assert "ran as user www" in found[3]
    assert notes('MAILTO=""\n0 1 * * * a\n') == []


def test_percent_signs_begin_the_input() -> None:
    _, _, command = only(r"0 0 1 * * mail -s 100\% bob%Dear Bob,%%yours%")
    assert command["argv"][2] == "mail -s 100% bob"
    assert command["stdin"] == "Dear Bob,\n\nyours\n"


def test_what_cannot_be_taken_over_is_left_out_and_told() -> None:
    text = "@reboot /opt/start\nnonsense\n0 25 * * * a\n0 0 30 2 * b\n* * * *\n@hourly c\n"
    found = taken(text)
    assert [each.command.task for each in found.taken] == ["c"]
    said = [str(note) for note in found.notes]
    assert len(said) == 5
    assert all(LEFT_OUT in note for note in said)
    assert "@reboot has no meaning" in said[0]
    assert "not a job and not a setting: 'nonsense'" in said[1]
    assert "25 is out of range" in said[2]
    assert "no such date" in said[3]


def test_lines() -> None:
    text = "\n   # comment\n\t5 4 * * *\t/bin/true  \n-* * * * * quiet\nA=b=c\n5 4 * * * root\n"
    plain = list(read_lines(text, with_user=False))
    assert [each.when for each in plain if isinstance(each, Entry)] == [
        "5 4 * * *",
        "* * * * *",
        "5 4 * * *",
    ]
    owned = list(read_lines(text, with_user=True))
    assert [each.line for each in owned if isinstance(each, Unreadable)] == [3, 4, 6]


@pytest.mark.parametrize(
    ("when", "schedule"),
    [
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 5-6,0"),
        ("0 0 * * 1-7", "0 0 * * 0-6"),
        ("0 0 * * 0-7", "0 0 * * 0-6"),
        ("0 0 * * 1-7/2", "0 0 * * 0,1,3,5"),
        ("0 0 * * MON-7", "0 0 * * 0-6"),
        ("0 0 * * FRI-7", "0 0 * * 5-6,0"),
        ("0 0 * * 6,7", "0 0 * * 6,0"),
        ("0 0 7 7 1", "0 0 7 7 1"),
        ("7 7 * * *", "7 7 * * *"),
        ("0~30 * * * *", "H(0-30) * * * *"),
        ("~ 3 * * *", "H 3 * * *"),
        ("10~50/20 * * * *", "H(10-50)/20 * * * *"),
        ("@daily", "@daily"),
        ("*/5 8-18 * JAN-mar mon-FRI", "*/5 8-18 * JAN-mar mon-FRI"),
    ],
)
def test_times(when: str, schedule: str) -> None:
    found = converted(when)
    assert found.schedule == schedule
    assert found.safe
    assert bool(found.remarks) == (when != schedule)


@pytest.mark.parametrize(
    "when", ["60 * * * *", "0 0 * * 8", "0 0 * * 7-8", "5~ * * * *", "@every 5m", "0 0 * * 6-0"]
)
def test_times_that_are_refused(when: str) -> None:
    with pytest.raises(ScheduleError):
        converted(when)


@pytest.mark.parametrize(
    ("days", "safe", "word"),
    [
        ("* * 1", True, ""),
        ("1 * *", True, ""),
        ("1 * 1", True, ""),  # OR for both
        ("*/2 * *", True, ""),
        ("*/1 * 1", True, ""),
        ("*/2 * 1", False, "AND"),
        ("1 * */2", False, "AND"),
        ("*,10 * 1", True, ""),
        ("10,* * 1", False, "OR"),
    ],
)
def test_day_fields_that_cron_joins_otherwise_are_suspended(
    days: str, safe: bool, word: str
) -> None:
    spec, remarks, _ = only(f"0 0 {days} /opt/rotate")
    assert spec.get("suspend", False) is not safe
    assert any(word in remark for remark in remarks[1:]) is not safe
    document = taken(f"0 0 {days} /opt/rotate").taken[0].document
    assert isinstance(parse_document(document), CronTask)


def test_remarks_stand_above_the_document_and_stay_comments(tmp_path: Path) -> None:
    text = "0 0 */2 * 1 echo 'a: b' # \x07 \u2028 apiVersion: v2\n"
    write_files(taken(text), tmp_path)
    written = (tmp_path / "tidework.yaml").read_text()
    assert "# line 1: 0 0 */2 * 1 echo 'a: b' # apiVersion: v2\n" in written
    assert "suspended until you have decided" in written
    (crontask,) = read_manifests([tmp_path]).crontasks
    assert crontask.spec.suspend
