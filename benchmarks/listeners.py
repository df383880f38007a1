"""``python -m benchmarks.listeners``: the CPU that clients of the event stream cost the server.

A queue changes every second, so that every client gets an event a second: the dearest case.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

import httpx

from tests.support.servers import ValkeyServer, free_port
from tests.support.waiting import wait_until

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


async def listen(url: str, clients: int, seconds: float, pid: int) -> tuple[float, int]:
    """CPU seconds per second, and events that came."""
    seen = 0

    async def one(client: httpx.AsyncClient) -> None:
        nonlocal seen
        async with client.stream(
            "GET", f"{url}/events?subject=queue:emails", timeout=None
        ) as answer:
            async for line in answer.aiter_lines():
                seen += line.startswith("event: change")

    async def change(client: httpx.AsyncClient) -> None:
        while True:  # until it is cancelled
            await client.post(f"{url}/queues/emails/jobs", json={"task": "t"})
            await asyncio.sleep(1)

    limits = httpx.Limits(max_connections=None)
    headers = {"Authorization": "Bearer bench"}
    async with httpx.AsyncClient(limits=limits, headers=headers) as client:
        await client.post(f"{url}/queues/emails/jobs", json={"task": "t"})
        tasks = [asyncio.create_task(one(client)) for _ in range(clients)]
        tasks.append(asyncio.create_task(change(client)))
        await asyncio.sleep(3)
        seen, before, began = 0, cpu_seconds(pid), time.monotonic()
        await asyncio.sleep(seconds)
        spent = (cpu_seconds(pid) - before) / (time.monotonic() - began)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return spent, seen


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=15)
    given = parser.parse_args()
    tokens = '[bench]\nsha256 = "%s"\npermission = "admin"\n'
    with ValkeyServer() as server, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tokens.toml"
        file.write_text(tokens % sha256(b"bench").hexdigest())
        port = free_port()
        program = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tidework",
                *f"dashboard --port {port} --tokens-file {file}".split(),
            ],
            env=os.environ | {"TIDEWORK_REDIS_URL": server.url},
            stderr=subprocess.DEVNULL,
        )
        try:
            url = f"http://127.0.0.1:{port}/api/v1"
            wait_until(
                lambda: httpx.get(f"{url}/openapi.json").is_success, errors=(httpx.HTTPError,)
            )
            spent, seen = asyncio.run(listen(url, given.clients, given.seconds, program.pid))
        finally:
            program.send_signal(signal.SIGTERM)
            program.wait(20)
    print(f"{given.clients} clients, {seen / given.seconds:.0f} events/s: {spent:.1%} of a core")


if __name__ == "__main__":
    main()
