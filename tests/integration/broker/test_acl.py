"""Every role of docs/redis-access.md has the rights that it needs, and none that it does not.

The rules are read from the document itself. A server that was restarted or emptied of scripts
gets their text from whoever calls them next: each role may do that.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.integration.broker.acl_scenes import FORGETFUL, SCENES, Scene, Stage, job
from tests.integration.broker.acl_table import EVERYBODY, PLAIN, SCRIPTS
from tests.support.acl import (
    Rules,
    User,
    commands_in,
    documented_roles,
    say,
    script_commands,
    without,
)
from tests.support.servers import ValkeyServer, redis_binary
from tidework.broker import scripts
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect, connect_blocking
from tidework.errors import BrokerRefusedError
from tidework.model.identity import QueueName
from tidework.model.job import JobState

ROLES = documented_roles()
OTHER = QueueName("bank", "transfers")


@pytest.fixture(scope="module", params=["valkey", "redis"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ValkeyServer]:
    """It keeps its users in a file, as a server with ACLs does."""
    binary: Path | None = None
    if request.param == "redis":
        binary = redis_binary()
        if binary is None:
            pytest.skip("redis-server is not on the PATH")
    users = tmp_path_factory.mktemp("server") / "users.acl"
    users.touch()
    with ValkeyServer(binary, "--aclfile", str(users)) as found:
        yield found


@pytest.fixture
def client(server: ValkeyServer) -> Iterator[redis.Redis]:
    with server.client() as found:
        found.acl_log_reset()
        yield found


@pytest.fixture
def known(client: redis.Redis) -> frozenset[str]:
    """Every command of the server."""
    found: list[bytes] = say(client, "COMMAND LIST")
    return frozenset(name.decode() for name in found)


def new_user(client: redis.Redis, rules: Rules) -> User:
    """With these rights, in a namespace of its own."""
    namespace = f"n-{secrets.token_hex(4)}"
    user = User(client, f"user-of-{namespace}", namespace)
    user.allow(rules)
    return user


async def play(server: ValkeyServer, client: redis.Redis, scene: Scene, user: User) -> None:
    """Have the user act a scene."""
    staff, player = connect(server.url), connect(user.url(server.url), FORGETFUL)
    try:
        await scene(Stage(staff, player, client, QueueName(user.namespace, "q")))
    finally:
        await staff.close()
        await player.close()


def test_the_document_has_the_roles() -> None:
    assert list(ROLES) == ["inbox", *SCENES]
    every = Path(scripts.__file__).parent.glob("*.lua")
    assert {name for names in SCRIPTS.values() for name in names} == {each.stem for each in every}


@pytest.mark.parametrize("role", SCENES)
async def test_a_role_works_with_its_rights(
    server: ValkeyServer, client: redis.Redis, role: str
) -> None:
    user = new_user(client, ROLES[role])
    client.script_flush()

    await play(server, client, SCENES[role], user)

    assert user.refusals() == []


@pytest.mark.parametrize("role", SCENES)
async def test_a_role_works_with_none_of_them_less(
    server: ValkeyServer, client: redis.Redis, role: str
) -> None:
    spare = []
    for command in sorted(commands_in(ROLES[role])):
        user = new_user(client, without(ROLES[role], command))
        client.script_flush()
        told = ""
        try:
            await play(server, client, SCENES[role], user)
        except BrokerRefusedError as error:
            told = str(error)
        if "docs/redis-access.md" not in told or user.refusals() != [command]:
            spare.append((command, told, user.refusals()))

    assert spare == []


@pytest.mark.parametrize("role", SCENES)
def test_a_role_has_what_every_branch_of_its_scripts_calls(
    known: frozenset[str], role: str
) -> None:
    needed = EVERYBODY | PLAIN[role]
    for name in SCRIPTS[role]:
        needed |= script_commands(name, known)

    assert commands_in(ROLES[role]) == needed


def test_a_command_that_only_a_further_script_calls_would_be_noticed(
    known: frozenset[str],
) -> None:
    assert script_commands("resign", known) == {"get", "del"}
    # Of the fragments in front of it those functions count that it can come to.
    assert script_commands("cron_record", known) == {"hmget", "zrangebylex"}
    assert {"info", "zincrby", "lmove"} - script_commands("intake", known) == {"info"}


async def test_a_restarted_server_gets_the_scripts_from_every_role(
    server: ValkeyServer, client: redis.Redis
) -> None:
    users = {role: new_user(client, ROLES[role]) for role in SCENES}
    client.acl_save()
    server.kill()
    server.restart()

    for role, user in users.items():
        client.script_flush()
        await play(server, client, SCENES[role], user)

    assert [user.refusals() for user in users.values()] == [[]] * len(users)


async def test_a_program_goes_on_when_the_server_has_forgotten_the_scripts(
    server: ValkeyServer, client: redis.Redis
) -> None:
    user = new_user(client, ROLES["producer"])
    queue = QueueName(user.namespace, "q")
    broker = connect(user.url(server.url))
    for name in ("a", "b"):
        await broker.enqueue(queue, [job(name)])
        client.script_flush()
    assert (await broker.stats(queue)).states[JobState.READY] == 2
    await broker.close()
    assert user.refusals() == []


@pytest.mark.parametrize("role", SCENES)
async def test_a_role_reaches_no_other_namespace(
    server: ValkeyServer, client: redis.Redis, role: str
) -> None:
    user = User(client, f"{role}-of-shop", "shop")
    user.allow(ROLES[role])
    near = QueueName("shop2", "transfers")
    for other in (OTHER, near):
        broker = connect(user.url(server.url))
        with pytest.raises(BrokerRefusedError) as caught:
            await broker.get_job(other, "a")
        told = str(caught.value)
        assert f"user '{role}-of-shop'" in told
        assert "another namespace" in told
        assert "docs/redis-access.md" in told
        await broker.close()
    for other in (OTHER, near):
        assert [key for key in user.refusals() if key.startswith(f"tw1:{{{other}}}:")]


def test_a_program_without_an_event_loop_is_told_the_same(
    server: ValkeyServer, client: redis.Redis
) -> None:
    user = User(client, "blocking", "shop")
    user.allow(ROLES["producer"])
    broker = connect_blocking(user.url(server.url))

    with pytest.raises(BrokerRefusedError, match=r"user 'blocking'.*another namespace"):
        drive(broker.enqueue(OTHER, [job("a")]))
    drive(broker.close())


async def test_a_foreign_program_may_put_documents_into_an_inbox_and_nothing_else(
    server: ValkeyServer, client: redis.Redis
) -> None:
    user = User(client, "foreign", "shop")
    user.allow(ROLES["inbox"])
    inbox, queue = "tw1:{shop/emails}:inbox", QueueName("shop", "emails")
    with redis.Redis.from_url(user.url(server.url), protocol=2) as foreign:
        assert foreign.lpush(inbox, b'{"task":"t","id":"a"}') == 1
        for refused in (
            ("LPUSH", "tw1:{shop/emails}:intake", "x"),
            ("LPUSH", "tw1:{bank/emails}:inbox", "x"),
            ("LRANGE", inbox, 0, -1),
            ("RPOP", inbox),
            ("DEL", inbox),
            ("EVAL", "return 1", 0),
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                foreign.execute_command(*refused)
    broker = connect(server.url)
    assert (await broker.stats(queue)).inbox == 1
    assert (await broker.stats(queue)).states[JobState.READY] == 0
    await broker.close()


@pytest.mark.parametrize("role", ["producer", "worker"])
async def test_nobody_lists_the_queues_of_others(
    server: ValkeyServer, client: redis.Redis, role: str
) -> None:
    user = new_user(client, ROLES[role])
    broker = connect(user.url(server.url))
    with pytest.raises(BrokerRefusedError, match="smembers"):
        await broker.queues()
    await broker.close()


async def test_rules_add_up(server: ValkeyServer, client: redis.Redis) -> None:
    user = new_user(client, (*ROLES["producer"], *ROLES["viewer"]))
    staff, broker = connect(server.url), connect(user.url(server.url))
    queue = QueueName(user.namespace, "q")
    await staff.put_crontasks(queue, 1, {"c": b"{}"})
    await staff.open_queue(queue)

    assert queue in await broker.queues()
    assert await broker.crontasks(queue) == {"c": {}}
    assert await broker.cron_record(queue, "c") is None
    assert await broker.run_now(queue, None, "c", "n", job("c-run-n"))

    assert user.refusals() == []
    await staff.close()
    await broker.close()


async def test_an_operator_serves_every_namespace(
    server: ValkeyServer, client: redis.Redis
) -> None:
    rules = [rule for rule in ROLES["scheduler"] if rule.startswith("+")]
    user = new_user(client, ("~tw1:*", *rules))

    await play(server, client, SCENES["scheduler"], user)

    assert user.refusals() == []
