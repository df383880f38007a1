"""The HTTP API of `tidework dev`: on the loopback, where its one person may do everything.

It is there for looking: should it fail, the system goes on without it.
"""

from __future__ import annotations

import logging

from tidework.access.access import Loopback
from tidework.access.caller import Permission
from tidework.api.application import PREFIX, create_api
from tidework.api.context import ApiContext
from tidework.api.server import ApiServer
from tidework.broker.broker import Broker
from tidework.dev.port import HOST
from tidework.settings import DASHBOARD_PORT

logger = logging.getLogger(__name__)


class LocalApi:
    """Listens from its construction on. port: None = the usual one, or the next that is free"""

    def __init__(self, broker: Broker, namespace: str, port: int | None) -> None:
        app = create_api(ApiContext(broker, Loopback(Permission.ADMIN), namespace))
        wanted = DASHBOARD_PORT if port is None else port
        self._server = ApiServer(app, HOST, wanted, or_next=port is None)
        self.url = f"{self._server.url}{PREFIX}"

    async def run(self) -> None:
        """Serve until ``stop``."""
        try:
            await self._server.serve()
        except Exception:
            logger.exception("the HTTP API has failed", extra={"event": "api_failed"})

    def stop(self) -> None:
        """End; requests that are served get a few seconds."""
        self._server.stop()

    def close(self) -> None:
        """Give the port back."""
        self._server.close()
