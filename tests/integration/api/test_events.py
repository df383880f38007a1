"""Events over a socket: a real server, a real Redis that goes away and comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api.served import served
from tests.support.fixtures import namespace, redis_url, valkey
from tests.support.servers import ValkeyServer

__all__ = ["namespace", "redis_url", "valkey"]


class Stream:
    """Events of an answer, one after the other."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.iter_lines()
        self.last_id = ""

    def next(self) -> tuple[str, Any]:
        """Kind and data of the next event."""
        kind, data = "", ""
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                self.last_id = value
            elif name == "data":
                data = value
            elif not line and kind:
                return kind, json.loads(data)
        raise AssertionError("the stream has ended")


@pytest.fixture
def url(redis_url: str, namespace: str) -> Iterator[str]:
    with served(redis_url, namespace) as found:
        yield f"{found}/api/v1"


def enqueue(url: str, queue: str = "emails") -> str:
    answer = httpx.post(f"{url}/queues/{queue}/jobs", json={"task": "t"})
    found: str = answer.json()["id"]
    return found


def listening(url: str, *subjects: str, **headers: str) -> Any:
    params = httpx.QueryParams([("subject", subject) for subject in subjects])
    return httpx.stream("GET", f"{url}/events", params=params, headers=headers, timeout=30)


def test_a_change_arrives_and_is_what_a_get_answers(url: str) -> None:
    enqueue(url)
    with listening(url, "queue:emails", "queues") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        stream = Stream(answer)
        kinds = [stream.next() for _ in range(2)]
        assert [(kind, found["subject"]) for kind, found in kinds] == [
            ("state", "queue:emails"),
            ("state", "queues"),
        ]
        enqueue(url)
        kind, found = stream.next()

    assert (kind, found["data"]["ready"]) == ("change", 2)
    shown = httpx.get(f"{url}/queues/emails").json()
    assert found["data"].keys() == (shown["items"][0] if "items" in shown else shown).keys()


def test_a_job_is_followed_to_its_end(url: str) -> None:
    job_id = enqueue(url)
    with listening(url, f"job:emails/{job_id}") as answer:
        stream = Stream(answer)
        assert stream.next()[1]["data"]["state"] == "ready"
        httpx.post(f"{url}/jobs/emails/{job_id}/cancel")
        assert stream.next()[1]["data"]["state"] == "cancelled"
        httpx.delete(f"{url}/jobs/emails/{job_id}")
        assert stream.next()[0] == "gone"


def test_a_client_that_comes_back_gets_what_it_missed(url: str) -> None:
    enqueue(url)
    with listening(url, "queue:emails") as stays:
        staying = Stream(stays)
        staying.next()
        with listening(url, "queue:emails") as goes:
            going = Stream(goes)
            going.next()
        enqueue(url)
        staying.next()
        with listening(url, "queue:emails", **{"Last-Event-ID": going.last_id}) as back:
            kind, found = Stream(back).next()

    assert (kind, found["data"]["ready"]) == ("change", 2)


@pytest.mark.parametrize(
    ("subjects", "code"),
    [
        (("job:emails/nothing",), "job_not_found"),
        (("queue:nothing",), "queue_not_found"),
        (("quues",), "invalid_request"),
        ((), "invalid_request"),
        (("queues",) * 21, "invalid_request"),
    ],
)
def test_what_cannot_be_listened_to_is_a_problem(
    url: str, subjects: tuple[str, ...], code: str
) -> None:
    enqueue(url)
    answer = httpx.get(f"{url}/events", params=[("subject", subject) for subject in subjects])

    assert answer.json()["code"] == code


def test_redis_goes_away_and_comes_back() -> None:
    with ValkeyServer() as server, served(server.url, "default") as found:
        url = f"{found}/api/v1"
        enqueue(url)
        with listening(url, "queue:emails") as answer:
            stream = Stream(answer)
            stream.next()
            server.sync_and_kill()
            assert stream.next()[0] == "trouble"
            server.start()
            assert stream.next()[0] in ("recovered", "change")


def test_the_number_of_commands_does_not_grow_with_the_clients() -> None:
    with (
        ValkeyServer() as server,
        served(server.url, "default") as found,
        server.client() as client,
    ):
        url = f"{found}/api/v1"
        enqueue(url)
        with httpx.Client(timeout=30, limits=httpx.Limits(max_connections=None)) as many:
            answers = [
                many.send(
                    many.build_request("GET", f"{url}/events?subject=queue:emails"), stream=True
                )
                for _ in range(30)
            ]
            streams = [Stream(answer) for answer in answers]
            for stream in streams:
                stream.next()
            before = int(client.info("stats")["total_commands_processed"])
            for _ in range(3):
                enqueue(url)
                for stream in streams:
                    assert stream.next()[0] == "change"
            after = int(client.info("stats")["total_commands_processed"])
            for answer in answers:
                answer.close()

    # A look for each client would send four commands, thirty times for each of the three changes.
    assert after - before < 30 * 3 * 4 / 2


def test_the_end_of_the_server_ends_the_stream(redis_url: str, namespace: str) -> None:
    with served(redis_url, namespace) as found:
        url = f"{found}/api/v1"
        enqueue(url)
        context = listening(url, "queue:emails")
        answer = context.__enter__()
        stream = Stream(answer)
        stream.next()

    with pytest.raises(AssertionError, match="the stream has ended"):
        stream.next()
    context.__exit__(None, None, None)
