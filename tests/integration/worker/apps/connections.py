"""An application that has all kinds of sockets once it is imported; named "own", only our own."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

from tidework.app import Tidework

app = Tidework("connections", queue="jobs")
kept: list[object] = []

if os.environ["TIDEWORK_WORKER_NAME"] != "own":
    address = urlsplit(os.environ["TIDEWORK_REDIS_URL"])
    assert address.hostname
    assert address.port
    kept.append(socket.create_connection((address.hostname, address.port)))
    kept.append(socket.create_server(("127.0.0.1", 0)))
    kept.extend(socket.socketpair())
    numbers = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    numbers.connect(("127.0.0.1", 9))
    kept.append(numbers)


@app.task
def add(a: int, b: int) -> int:
    return a + b


add.enqueue_sync(a=1, b=1)
