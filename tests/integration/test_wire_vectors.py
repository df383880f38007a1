"""The wire format where it counts: records as scripts pack them, a producer that is not ours."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess
from tests.support.acl import User, documented_roles, say
from tests.support.fixtures import namespace, redis_server, valkey
from tests.support.servers import ValkeyServer
from tidework.broker.scripts import load_script
from tidework.client import Client
from tidework.model.job import JobState
from tidework.settings import Settings

__all__ = ["namespace", "redis_server", "valkey"]

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "docs" / "wire-format"
EXAMPLE = ROOT / "examples" / "node-producer"
SCRIPTS = ROOT / "worker" / "src" / "tidework" / "broker" / "scripts"
RECORDS = json.loads((VECTORS / "records.json").read_text("utf-8"))["records"]
PACK = """\
local K = {records = KEYS[1], ready = KEYS[2], scheduled = KEYS[3]}
%s
local r = cjson.decode(ARGV[1])
r.state = string.byte(r.state)
save('x', r)
flush()
local found = {redis.call('HGET', K.records, 'x')}
if r.state ~= WAITING and r.state ~= RUNNING then
  for _, member in ipairs(index_members(ARGV[2], load('x'))) do found[#found + 1] = member end
end
redis.call('DEL', K.records)
return found
"""

ROUND = """\
import { openRedis } from "./redis.mjs";
import { composeScript } from "./scripts.mjs";
import { queueKey } from "./tidework.mjs";

const [url, namespace, folder] = process.argv.slice(1);
const redis = await openRedis(url);
const call = async (name, ...values) => {
  const { text, sha, keys } = composeScript(folder, name);
  const rest = [keys.length, ...keys.map((part) => queueKey(namespace, "q", part)), ...values];
  try {
    return await redis.send("EVALSHA", sha, ...rest);
  } catch (error) {
    if (!error.message.startsWith("NOSCRIPT")) throw error;
    return redis.send("EVAL", text, ...rest);
  }
};
const exchange = (sequence, want, ...ends) =>
  call("exchange", "node.1", sequence, want, 0, 12000, 3, 20, 3600000, 604800000, 10000, 100, "",
    0, ends.length / 6, 0, ...ends);
const envelope = JSON.stringify({ v: 1, id: "a", task: "t", created_at: 1, params: {} });
const log = [await call("open_queue", 1)];
log.push(await call("enqueue", "a", `t\\0${envelope}`, 5, "", "es:k"));
log.push(await call("enqueue", "b", `t\\0${envelope}`, 5, "", "es:k"));
const [, , , , , [[id, stored, attempt]]] = await exchange(1, 5);
log.push([id, attempt, stored.split("\\0")[0]]);
log.push((await exchange(2, 0, id, "node.1:1", "c", 0, "7", ""))[4]);
log.push((await exchange(2, 0, id, "node.1:1", "c", 0, "8", ""))[4]);
log.push(await exchange(1, 5));
const [state, ...record] = await call("get_job", "a");
log.push([state, record[2], record[12]]);
console.log(JSON.stringify(log));
redis.close();
"""


@pytest.fixture(params=["valkey", "redis_server"])
def client(request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    server: ValkeyServer = request.getfixturevalue(request.param)
    with server.client() as found:
        yield found


@pytest.mark.parametrize("case", RECORDS, ids=[case["name"] for case in RECORDS])
def test_scripts_pack_a_record_as_documented(
    client: redis.Redis, namespace: str, case: dict[str, Any]
) -> None:
    fragments = files("tidework.broker").joinpath("scripts", "fragments")
    text = "\n".join(
        fragments.joinpath(f"{name}.lua").read_text("utf-8")
        for name in ("reads", "writes", "record", "index")
    )
    keys = [f"tw1:{{{namespace}/q}}:{part}" for part in ("records", "ready", "scheduled")]

    packed, *members = say(
        client, "EVAL", PACK % text, "3", *keys, json.dumps(case["fields"]), case["id"]
    )

    assert packed.hex() == case["hex"]
    assert [member.decode() for member in members] == case["index"]


def node(*words: str | Path, succeeds: bool = True) -> subprocess.CompletedProcess[str]:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not on the PATH; other languages are shown with it")
    ended = subprocess.run(
        [program, *map(str, words)],
        check=False,
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ended.returncode == 0) == succeeds, ended.stderr
    return ended


def test_another_language_runs_the_vectors() -> None:
    said = node("check.mjs", VECTORS).stdout

    counted = {line.rpartition(": ")[0] for line in said.splitlines()}
    assert counted == {"envelopes.json", "keys.json", "unique.json", "fingerprints.json"}


@pytest.mark.parametrize(
    ("file", "said", "instead"),
    [
        ("envelopes.json", '"priority": 5', '"priority": 6'),
        ("envelopes.json", '"field": "task"', '"field": "id"'),
        ("keys.json", ":inbox", ":outbox"),
        ("unique.json", '"es:bob"', '"ss:bob"'),
        ("fingerprints.json", "Timeout-", "Timeout-0"),
    ],
)
def test_another_language_notices_a_difference(
    tmp_path: Path, file: str, said: str, instead: str
) -> None:
    folder = shutil.copytree(VECTORS, tmp_path / "vectors")
    text = (folder / file).read_text("utf-8")
    assert said in text
    (folder / file).write_text(text.replace(said, instead, 1))

    assert node("check.mjs", folder, succeeds=False).stderr.startswith(f"{file}: ")


def test_another_language_composes_the_scripts_that_we_send() -> None:
    found = {}
    for line in node("scripts.mjs", SCRIPTS).stdout.splitlines():
        name, sha, keys, args = line.split(" ")
        found[name] = (sha, keys, args)

    ours = {path.stem: load_script(path.stem) for path in SCRIPTS.glob("*.lua")}
    assert found == {
        name: (script.sha, ",".join(script.keys), ",".join(script.args))
        for name, script in ours.items()
    }


@pytest.mark.parametrize("kind", ["valkey", "redis_server"])
def test_another_language_calls_the_scripts(
    request: pytest.FixtureRequest, namespace: str, kind: str
) -> None:
    server: ValkeyServer = request.getfixturevalue(kind)
    with server.client() as client:
        client.script_flush()

    said = node("--input-type=module", "--eval", ROUND, server.url, namespace, SCRIPTS).stdout

    assert json.loads(said) == [
        [1, 1, ""],
        ["ok", [1]],
        ["ok", ["a"]],  # its unique key is held by the first
        ["a", 1, "t"],
        [],
        [],  # the same exchange again: nothing is settled twice
        ["stale", 2],
        ["succeeded", 1, "7"],
    ]


@pytest.fixture
def jobs(valkey: ValkeyServer, namespace: str) -> Iterator[Jobs]:
    client = Client(Settings(redis_url=valkey.url, namespace=namespace))
    yield Jobs(client)
    client.close_sync()


def test_a_worker_runs_what_another_language_puts_into_the_inbox(
    valkey: ValkeyServer, namespace: str, jobs: Jobs, tmp_path: Path
) -> None:
    given = {"redis_url": valkey.url, "namespace": namespace}
    worker = WorkerProcess("hostile", tmp_path / "worker.log", given)
    with valkey.client() as client:
        user = User(client, f"inbox-{namespace}", namespace)
        user.allow(documented_roles()["inbox"])
        url = user.url(valkey.url)
        try:
            worker.wait_started()
            place = f"{namespace}/jobs"

            job_id = node("enqueue.mjs", url, place, "add", '{"a": 2, "b": 3}').stdout.strip()

            assert jobs.result(job_id) == 5
            assert json.loads(jobs.get(job_id).body)["params"] == {"a": 2, "b": 3}
            refused = node("enqueue.mjs", url, place, "no task", succeeds=False)
            assert refused.stderr.startswith("task: ")
            elsewhere = node("enqueue.mjs", url, "another/jobs", "add", succeeds=False)
            assert "NOPERM" in elsewhere.stderr
        finally:
            worker.end()
            say(client, "ACL", "DELUSER", user.name)
    assert worker.remains() == []
    assert jobs.client.stats_sync("jobs").states[JobState.SUCCEEDED] == 1
