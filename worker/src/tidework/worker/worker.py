"""The worker as a program: settings in, exit code out. supervisor.py composes and drains it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence

from tidework.broker.broker import Claims
from tidework.broker.redis.redis_broker import connect
from tidework.errors import BrokerError, ConfigurationError
from tidework.logs import configure_logs
from tidework.loop import accept_signals
from tidework.settings import WorkerSettings
from tidework.worker import process
from tidework.worker.child_config import ChildConfig
from tidework.worker.places.solitary import most_solitary
from tidework.worker.supervisor import Supervisor
from tidework.worker.template import launch as template_process
from tidework.worker.template.launch import TemplateProcess

PARENT_VARIABLE = "TIDEWORK_PARENT_PID"
"""Names the process with which the worker is to end; it has to be the worker's parent."""

DESCRIPTORS = 128
DESCRIPTORS_PER_QUEUE = 2
DESCRIPTORS_PER_SLOT = 10
"""Open files: two pipes, a pidfd and the stacks of each child, twice while one replaces another."""

OK = 0
FAILED = 1
MISCONFIGURED = 2

logger = logging.getLogger(__name__)


def run_worker(settings: WorkerSettings) -> int:
    """Run a worker in this process until it is asked to stop by a signal.

    Returns the exit code: 0 drained, 1 a part of the worker failed, 2 it cannot start as
    configured (said on standard error).
    """
    configure_logs(settings.log_format, settings.log_level, worker=settings.worker_name)
    accept_signals()
    if parent := os.environ.pop(PARENT_VARIABLE, ""):
        process.die_with_parent(int(parent))
    adopt = process.become_subreaper()
    try:
        places = settings.places
        children = 1 + most_solitary(places) if settings.has_loop else places
        process.allow_descriptors(
            DESCRIPTORS
            + DESCRIPTORS_PER_SLOT * children
            + DESCRIPTORS_PER_QUEUE * len(settings.queue)
        )
        if not settings.app:
            raise ConfigurationError(
                "no application is named: give --app MODULE, --app MODULE:NAME or "
                "--app COMMANDS.yaml (TIDEWORK_APP)"
            )
        broker = connect(settings.redis_url, settings.limits)
        first = template_process.fork(ChildConfig.of(settings), _be_template)
        asyncio.run(_serve(settings, broker, first, adopt=adopt))
    except (ConfigurationError, BrokerError) as error:
        _complain(settings, error)
        return MISCONFIGURED
    except Exception:
        logger.critical(
            "a part of the worker failed, so all of it ends",
            exc_info=True,
            extra={"event": "worker_failed"},
        )
        return FAILED
    return OK


def _be_template(arguments: Sequence[str]) -> int:
    # Not before: the supervisor is to be without the code that runs jobs.
    from tidework.worker.child.template import main

    return main(arguments)


async def _serve(
    settings: WorkerSettings, broker: Claims, first: TemplateProcess | None, *, adopt: bool
) -> None:
    supervisor = Supervisor(settings, broker, adopt=adopt, first=first)
    if settings.probe_port is None:
        await supervisor.run()
        return
    # Imported for those who want it: an HTTP server costs some memory.
    from tidework.probes import ProbeServer

    probes = ProbeServer(settings.probe_host, settings.probe_port, supervisor.health)
    logger.info(
        "probes listen",
        extra={"event": "probes_opened", "host": settings.probe_host, "port": probes.port},
    )
    try:
        await supervisor.run()
    finally:
        probes.close()


def _complain(settings: WorkerSettings, error: Exception) -> None:
    human = settings.log_format == "human"
    if human or (settings.log_format == "auto" and sys.stderr.isatty()):
        sys.stderr.write(f"tidework worker: {error}\n")
    else:
        logger.error("%s", error, extra={"event": "worker_misconfigured"})
