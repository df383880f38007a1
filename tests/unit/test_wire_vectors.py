"""Our own code against the test vectors of docs/wire-format, which other languages run too."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from tests.unit.wire_calls import FILE, SCRIPTS, write_all
from tidework.broker.documents import AcceptedDocument
from tidework.broker.keys import QUEUE_PARTS, REGISTRY, queue_key
from tidework.broker.redis.calls import unique_spec
from tidework.errors import ConfigurationError, EnvelopeError
from tidework.intake import read_document
from tidework.model.identity import QueueName
from tidework.model.job import Job, NewerEnvelopeError, decode_job, decode_newer_job
from tidework.model.outcome import JobError
from tidework.model.unique import Unique, parse_unique

FOLDER = FILE.parent
FIXED = ">BBHHHHBBddd"
FIXED_NAMES = (
    "state", "priority", "attempt", "deliveries", "losses", "releases", "cancel", "raw",
    "available", "changed", "started",
)  # fmt: skip
TEXT_NAMES = ("token", "cron", "unique", "task", "fingerprint")


def cases(file: str, name: str) -> list[Any]:
    """Each under its own name; in a case with ``fill`` every % stands for so many x."""
    text = (FOLDER / file).read_text("utf-8")
    found = []
    for case in json.loads(text)[name]:
        if isinstance(case, dict) and "fill" in case:
            filled = json.dumps(case).replace("%", "x" * case["fill"])
            found.append(pytest.param(json.loads(filled), id=case["name"]))
        else:
            found.append(pytest.param(case, id=case.get("name")))
    return found


ENVELOPES = json.loads((FOLDER / "envelopes.json").read_text("utf-8"))
NOW, NEW_ID = ENVELOPES["now"], ENVELOPES["new_id"]


def raw_of(case: dict[str, str]) -> bytes:
    return bytes.fromhex(case["hex"]) if "hex" in case else case["document"].encode()


def read_rules(unique: Unique | None) -> dict[str, Any] | None:
    if unique is None:
        return None
    return {
        "key": unique.key,
        "until": unique.until.value,
        "ttl": unique.ttl,
        "on_conflict": unique.on_conflict.value,
    }


def normalised(job: Job) -> dict[str, Any]:
    names = ("id", "task", "params", "priority", "created_at", "available_at", "max_attempts")
    found = {name: getattr(job, name) for name in (*names, "timeout", "trace", "extra")}
    return found | {"unique": read_rules(job.unique)}


@pytest.mark.parametrize("case", cases("envelopes.json", "valid"))
def test_a_valid_document_is_this_job(case: dict[str, Any]) -> None:
    job = decode_job(raw_of(case), new_id=NEW_ID, now=NOW)

    assert normalised(job) == case["job"]
    # What we write ourselves reads alike.
    again = decode_job(job.encode(), new_id="other", now=0.0)
    assert normalised(again) == case["job"]


@pytest.mark.parametrize("case", cases("envelopes.json", "valid"))
def test_a_document_that_says_its_id_and_time_is_stored_as_it_came(case: dict[str, Any]) -> None:
    raw = raw_of(case)
    found = read_document(raw, NOW)

    assert isinstance(found, AcceptedDocument)
    document = json.loads(raw)
    whole = None not in (document.get("id"), document.get("created_at"), document.get("task"))
    php = [] in (document.get("params"), document.get("trace"))
    assert (found.body == raw) == (whole and not php)
    stored = decode_job(found.body, new_id="missing", now=0.0)
    own_id = case["job"]["id"] if found.named else found.job.id
    assert normalised(stored) == {**case["job"], "id": own_id}


@pytest.mark.parametrize("case", cases("envelopes.json", "newer"))
def test_of_a_later_version_these_fields_are_read(case: dict[str, Any]) -> None:
    raw = raw_of(case)
    with pytest.raises(NewerEnvelopeError):
        decode_job(raw, new_id=NEW_ID, now=NOW)

    job, body, _ = decode_newer_job(raw, new_id=NEW_ID, now=NOW)

    assert {name: getattr(job, name) for name in case["job"]} == case["job"]
    stored = json.loads(body)
    assert {name: stored.get(name) for name in json.loads(raw)} == json.loads(raw)
    assert (stored["id"], stored["created_at"]) == (job.id, job.created_at)


@pytest.mark.parametrize("case", cases("envelopes.json", "invalid"))
def test_an_invalid_document_is_refused_for_this_field(case: dict[str, Any]) -> None:
    with pytest.raises(EnvelopeError) as caught:
        read_any(raw_of(case))

    assert (kind_of(caught.value), caught.value.field) == (case["kind"], case["field"])


def read_any(raw: bytes) -> Job:
    """Of this version or a later one."""
    try:
        return decode_job(raw, new_id=NEW_ID, now=NOW)
    except NewerEnvelopeError:
        return decode_newer_job(raw, new_id=NEW_ID, now=NOW)[0]


def kind_of(error: EnvelopeError) -> str:
    if error.field:
        return "field"
    return "document" if "has to be a JSON object" in error.reason else "json"


@pytest.mark.parametrize("case", cases("keys.json", "keys"))
def test_a_part_of_a_queue_has_this_key(case: dict[str, str]) -> None:
    queue = QueueName(case["namespace"], case["queue"])

    assert queue_key(queue, case["part"]) == case["key"]


def test_every_part_has_a_vector() -> None:
    document = json.loads((FOLDER / "keys.json").read_text("utf-8"))

    assert {case["part"] for case in document["keys"]} == set(QUEUE_PARTS)
    assert document["registry"] == REGISTRY


@pytest.mark.parametrize("name", json.loads((FOLDER / "keys.json").read_text("utf-8"))["no_names"])
def test_these_are_no_names(name: str) -> None:
    for namespace, queue in ((name, "emails"), ("shop", name)):
        with pytest.raises(ConfigurationError):
            QueueName(namespace, queue)


@pytest.mark.parametrize("case", cases("unique.json", "unique"))
def test_a_unique_key_is_told_to_scripts_so(case: dict[str, Any]) -> None:
    unique = parse_unique(case["unique"])

    assert unique is not None
    assert unique_spec(Job("a", "t", {}, unique=unique)) == case["spec"]
    # How it is held, and the key, without on_conflict and time.
    assert case["record"] == case["spec"][0] + case["spec"].partition(":")[2]


@pytest.mark.parametrize("case", cases("fingerprints.json", "fingerprints"))
def test_an_error_has_this_fingerprint(case: dict[str, Any]) -> None:
    error = JobError(**case["error"])

    assert error.fingerprint == case["fingerprint"]
    assert JobError.decode(error.encode()) == error


@pytest.mark.parametrize("case", cases("records.json", "records"))
def test_a_record_is_packed_as_documented(case: dict[str, Any]) -> None:
    """That the scripts do the same is tested on a server (integration)."""
    fields = case["fields"]
    numbers = [ord(fields["state"]), *(fields[name] for name in FIXED_NAMES[1:])]
    texts = b"".join(fields[name].encode() + b"\0" for name in TEXT_NAMES)

    assert (struct.pack(FIXED, *numbers) + texts).hex() == case["hex"]
    assert list(fields) == [*FIXED_NAMES, *TEXT_NAMES]


async def test_scripts_are_called_with_these_keys_and_arguments() -> None:
    assert FILE.read_text("utf-8") == await write_all(), (
        "python -m tests.unit.wire_calls --write renews the file"
    )


def test_every_script_has_a_sample_call() -> None:
    called = {call["script"] for call in json.loads(FILE.read_text("utf-8"))["calls"]}

    assert called == {path.stem for path in SCRIPTS.glob("*.lua")}
