"""An exchange that stands behind the wait at the inbox, sent before there is work.

The server makes it as soon as somebody brings work, without a round trip between: a job starts
that much earlier. What it claims is ours from that moment on, whether or not we hear of it. So
one that was not answered (the connection broke, the wait was given up, we stood still) is sent
again as any exchange is, until it is answered, before another one is.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tidework.broker.broker import Claims
from tidework.clock import Clock
from tidework.errors import BrokerError, BrokerUnavailableError, StaleRequestError
from tidework.model.lease import ExchangeRequest
from tidework.worker.queue.consumer import Consumer
from tidework.worker.queue.job_log import JobLog


class BehindWait:
    """The exchange of one consumer that is sent behind a wait. ``lease``: of its jobs."""

    def __init__(
        self, consumer: Consumer, broker: Claims, job_log: JobLog, clock: Clock, lease: timedelta
    ) -> None:
        self._consumer = consumer
        self._broker = broker
        self._job_log = job_log
        self._clock = clock
        self._lease_s = lease.total_seconds()
        self._unanswered: ExchangeRequest | None = None

    @property
    def is_unanswered(self) -> bool:
        """Is it not known what one has claimed?"""
        return self._unanswered is not None

    async def wait(self, timeout: timedelta) -> tuple[bytes | None, bool]:
        """Wait for a document: what came, None = the time is up; and was an exchange made then?

        Raises BrokerError.
        """
        await self.close()
        queue = self._consumer.queue
        request = self._consumer.compose_behind_wait()
        if request is None:
            return await self._broker.wait_for_document(queue, timeout), False
        self._unanswered = request
        began = self._clock.monotonic()
        try:
            document, reply = await self._broker.wait_then_exchange(queue, timeout, request)
        except BrokerUnavailableError:
            raise
        except BrokerError:
            # A full server refuses the wait and makes the exchange: the jobs are here already.
            await self.close()
            raise
        if reply is None or self._is_old(began):
            return document, False
        self._unanswered = None
        self._consumer.take_in_behind_wait(reply)
        return document, True

    async def close(self, *, claims: bool = True) -> None:
        """Have the one that was not answered answered, if there is one. Raises BrokerError.

        claims: if it was not made yet, is it to claim now?
        """
        while self._unanswered is not None:
            request = self._unanswered if claims else replace(self._unanswered, want=0)
            began = self._clock.monotonic()
            try:
                reply = await self._broker.exchange(self._consumer.queue, request)
            except StaleRequestError as error:
                # Nobody else counts: an answer of another life. Leases do the rest.
                self._job_log.note_redis_error(error, "exchange")
                self._unanswered = None
                return
            if not self._is_old(began):
                self._unanswered = None
                self._consumer.take_in_behind_wait(reply)

    def _is_old(self, began: float) -> bool:
        """We stood still meanwhile: what was claimed may be somebody else's by now."""
        return self._clock.monotonic() - began >= self._lease_s
