"""`tidework dashboard`: the HTTP API as a program of its own.

It starts also while Redis is away: it says so to those who ask, and serves once Redis is back.
SIGINT and SIGTERM end it; requests that are served get a few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import signal

from tidework.access.configured import access_of
from tidework.access.redaction import read_redaction
from tidework.api.application import PREFIX, create_api
from tidework.api.context import ApiContext
from tidework.api.server import ApiServer
from tidework.broker.redis.redis_broker import connect
from tidework.clock import SystemClock
from tidework.loop import accept_signals
from tidework.settings import DashboardSettings

logger = logging.getLogger(__name__)


async def run_api(settings: DashboardSettings) -> None:
    """Until a signal. Raises ConfigurationError for what cannot start."""
    accept_signals()
    access = access_of(settings, SystemClock())
    redaction = read_redaction(settings.dashboard_redact)
    broker = connect(settings.redis_url)
    context = ApiContext(
        broker,
        access,
        settings.namespace,
        settings.dashboard_origins,
        redaction,
    )
    server = ApiServer(
        create_api(context),
        settings.dashboard_host,
        settings.dashboard_port,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    url = f"{server.url}{PREFIX}"
    logger.info(
        "the HTTP API listens: %s", url, extra={"event": "api_listens", "port": server.port}
    )
    try:
        await server.serve()
    finally:
        server.close()
        await broker.close()
    logger.info("the HTTP API has ended", extra={"event": "api_ended"})
