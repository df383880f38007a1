"""Files into documents that fit together; every fault with its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.documents import CRON, QUEUE, faults_in
from tidework.errors import ConfigurationError
from tidework.manifests import (
    ManifestErrors,
    manifest_files,
    read_manifests,
)


def test_documents_of_several_files_and_folders_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text(CRON)
    (tmp_path / "a.yaml").write_text(f"---\n{QUEUE}---\n# nothing\n---\n")
    (tmp_path / "notes.txt").write_text("}{")
    (tmp_path / ".#a.yaml").symlink_to("nowhere")
    other = tmp_path / "more"
    other.mkdir()
    (other / "c.yaml").write_text(CRON.replace("nightly", "hourly"))

    found = read_manifests([tmp_path, other / "c.yaml", tmp_path / "a.yaml"])

    assert [queue.metadata.name for queue in found.queues] == ["emails"]
    assert [task.metadata.name for task in found.crontasks] == ["nightly", "hourly"]
    assert found.files == (tmp_path / "a.yaml", tmp_path / "b.yml", other / "c.yaml")
    assert manifest_files([tmp_path, other]) == found.files


def test_a_document_from_a_file_has_a_uid_that_stays(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{QUEUE}---\n{CRON}")

    one = read_manifests([tmp_path])
    (tmp_path / "a.yaml").write_text(f"{CRON}---\n# moved\n{QUEUE}")
    two = read_manifests([tmp_path])
    other = read_manifests([tmp_path], namespace="shop")

    assert one.crontasks[0].metadata.uid == two.crontasks[0].metadata.uid
    # It names runs in the queue: it has to be the same for ever.
    assert one.crontasks[0].metadata.uid == "ac22102f-1f1c-5820-af0b-a25e250ecf3a"
    uids = {document.metadata.uid for document in (*one.queues, *one.crontasks)}
    assert len(uids) == 2
    assert other.crontasks[0].metadata.uid not in uids


def test_documents_without_a_namespace_get_the_given_one(tmp_path: Path) -> None:
    named = CRON.replace("name: nightly", "name: nightly\n  namespace: shop")
    (tmp_path / "a.yaml").write_text(f"{QUEUE}---\n{named}")

    found = read_manifests([tmp_path], namespace="shop")

    assert found.queues[0].queue_name == found.crontasks[0].queue_name


def test_a_namespace_has_to_be_a_dns_label(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="namespace 'Not Good' is not a DNS label"):
        read_manifests([tmp_path], namespace="Not Good")


def test_all_faults_of_all_files_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    wrong_queue = QUEUE + "  maxReplica: 3\n  scaling:\n    idleSeconds: soon\n"
    wrong_cron = CRON.replace("0 6 * * *", "0 25 * * *")

    found = faults_in(tmp_path, wrong_queue, wrong_cron, "a: [")

    assert found == [
        "0.yaml:7: spec.maxReplica: unknown field; did you mean maxReplicas?",
        '0.yaml:9: spec.scaling.idleSeconds: has to be a whole number, not "soon"',
        (
            "1.yaml:8: spec.schedule: '0 25 * * *' at position 2: 25 is out of range; "
            "the hour field takes 0-23"
        ),
        (
            "2.yaml:1: not valid YAML: while parsing a flow node, expected the node content, "
            "but found '<stream end>'"
        ),
    ]


def test_the_text_of_the_error_has_a_line_per_fault(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(QUEUE + "  slot: 3\n  slots: 0\n")

    with pytest.raises(ManifestErrors) as caught:
        read_manifests([tmp_path])

    assert len(caught.value.errors) == 2
    assert str(caught.value).splitlines() == [str(error) for error in caught.value.errors]
    assert caught.value.errors[0].line == 7
    assert caught.value.errors[0].field == "spec.slot"
    assert caught.value.errors[0].file == str(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the file holds no document; write a TaskQueue or a CronTask"),
        ("# nothing\n---\n", "the file holds no document"),
        ("- a\n", "1: a document has to be a mapping with apiVersion, kind, metadata, spec"),
        ("just text\n", "1: a document has to be a mapping"),
        ("kind: TaskQueue\n", "1: apiVersion: is missing; use tidework.dev/v1alpha1"),
        (
            QUEUE.replace("v1alpha1", "v1"),
            "1: apiVersion: 'tidework.dev/v1' is not served; use tidework.dev/v1alpha1",
        ),
        (QUEUE.replace("TaskQueue", "taskqueue"), "did you mean TaskQueue?"),
        (
            QUEUE.replace("TaskQueue", "Deployment"),
            "2: kind: 'Deployment' is not served; known here: TaskQueue, CronTask",
        ),
        (QUEUE.replace("kind: TaskQueue\n", ""), "1: kind: is missing; known here: TaskQueue"),
        (QUEUE.replace("  name: emails\n", "  labels: {}\n"), "3: metadata.name: is required"),
        (QUEUE.replace("metadata:\n  name: emails\n", ""), "1: metadata: is required"),
        (QUEUE.replace("metadata:\n  name: emails", "metadata: emails"), "3: metadata: has to be"),
        (QUEUE.replace("emails", "E.Mails"), "4: metadata.name: 'E.Mails' is refused"),
        (QUEUE.replace("  app: shop.tasks\n", ""), "5: spec: is required"),
        (QUEUE + "  app: shop.more\n", "7: spec.app: given twice, first in line 6; keep one"),
        (QUEUE + "extra: 1\n", "7: extra: unknown field; known here: metadata, status, apiVersion"),
        (QUEUE + "  slots: {", "not valid YAML"),
        (QUEUE + "\tslots: 1\n", "7: not valid YAML"),
        (QUEUE + "  slots: \x01\n", "7: not valid YAML: special characters are not allowed"),
    ],
)
def test_faults_of_one_document(tmp_path: Path, text: str, fault: str) -> None:
    found = faults_in(tmp_path, text)

    assert fault in "\n".join(found)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"# fine\n# caf\xe9\n")

    with pytest.raises(ManifestErrors, match=r"a\.yaml:2: not UTF-8 text: byte 12 of the file"):
        read_manifests([tmp_path])


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)

    with pytest.raises(ManifestErrors) as caught:
        read_manifests([tmp_path / "missing.yaml", folder, pipe])

    assert sorted(str(error) for error in caught.value.errors) == [
        f"{folder}: the folder holds no *.yaml or *.yml file",
        f"{tmp_path}/missing.yaml: cannot be read: No such file or directory",
        f"{pipe}: this is neither a file nor a folder",
    ]
    with pytest.raises(ManifestErrors, match="name a file or a folder"):
        read_manifests([])


def test_a_name_that_is_taken_is_refused_with_both_places(tmp_path: Path) -> None:
    found = faults_in(tmp_path, QUEUE, f"{CRON}---\n{QUEUE}")

    assert found == [
        (
            f"1.yaml:13: metadata.name: TaskQueue default/emails is there already, "
            f"in {tmp_path}/0.yaml:4; rename one"
        )
    ]


def test_documents_without_a_name_or_of_a_foreign_kind_share_none(tmp_path: Path) -> None:
    nameless = QUEUE.replace("  name: emails\n", "  labels: {}\n")
    foreign = QUEUE.replace("TaskQueue", "ConfigMap")

    found = faults_in(tmp_path, nameless, nameless, foreign, foreign)

    assert [fault.split(": ")[1] for fault in found] == ["metadata.name"] * 2 + ["kind"] * 2


def test_one_name_may_be_used_by_both_kinds_and_in_two_namespaces(tmp_path: Path) -> None:
    other = QUEUE.replace("name: emails", "name: emails\n  namespace: shop")

    assert faults_in(tmp_path, QUEUE, CRON.replace("nightly", "emails"), other) == []


def test_a_uid_that_is_taken_is_refused_with_both_places(tmp_path: Path) -> None:
    uid = "\n  uid: 0b6f5d0e-0000-4000-8000-000000000001"
    one = CRON.replace("name: nightly", f"name: nightly{uid}")
    two = CRON.replace("name: nightly", f"name: hourly{uid}")

    found = faults_in(tmp_path, f"{QUEUE}---\n{one}---\n{two}")

    assert found == [
        f"22: metadata.uid: is the uid of the document in {tmp_path}/0.yaml:12 too; remove it here"
    ]


def test_a_crontask_needs_its_queue_among_the_documents(tmp_path: Path) -> None:
    typo = CRON.replace("queue: emails", "queue: email")
    far = CRON.replace("name: nightly", "name: far\n  namespace: shop")

    assert faults_in(tmp_path, QUEUE, typo, far) == [
        "1.yaml:6: spec.queue: no TaskQueue 'email' in namespace default; did you mean emails?",
        (
            "2.yaml:7: spec.queue: no TaskQueue 'emails' in namespace shop; "
            "there is none at all: add a TaskQueue"
        ),
    ]


def test_the_queues_that_there_are_get_named(tmp_path: Path) -> None:
    other = QUEUE.replace("emails", "reports")
    typo = CRON.replace("queue: emails", "queue: zzz")

    found = faults_in(tmp_path, f"{QUEUE}---\n{other}---\n{typo}")

    assert found[0].endswith("no TaskQueue 'zzz' in namespace default; known here: emails, reports")


def test_a_queue_with_faults_is_still_there_for_its_crontasks(tmp_path: Path) -> None:
    found = faults_in(tmp_path, QUEUE + "  slots: 0\n", CRON)

    assert found == ["0.yaml:7: spec.slots: has to be 1 or more, not 0"]


def test_a_timeout_above_the_hard_timeout_of_the_queue_is_refused(tmp_path: Path) -> None:
    queue = QUEUE + "  hardTimeoutSeconds: 60\n"

    assert faults_in(tmp_path, queue, CRON + "  timeoutSeconds: 60\n") == []
    assert faults_in(tmp_path, queue, CRON + "  timeoutSeconds: 61\n") == [
        (
            "1.yaml:9: spec.timeoutSeconds: 61 is above hardTimeoutSeconds of TaskQueue emails, "
            "which is 60"
        )
    ]
