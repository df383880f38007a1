"""``tidework-operator``: the operator, configured by TIDEWORK_* variables alone.

Exit status: 0 stopped by SIGTERM or SIGINT, 1 a part of the operator failed, 2 it cannot start as
configured (said on standard error).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from importlib import metadata

from tidework.clock import SystemClock
from tidework.errors import ConfigurationError
from tidework.logs import configure_logs
from tidework.loop import accept_signals
from tidework.probes import ProbeServer
from tidework_operator.service import OperatorService
from tidework_operator.settings import OperatorSettings

OK = 0
FAILED = 1
MISCONFIGURED = 2

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator in this process until a signal. Returns the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given in (["-h"], ["--help"]):
        print(_help())
        return OK
    if given == ["--version"]:
        print(f"tidework-operator {_version()}")
        return OK
    try:
        if given:
            raise ConfigurationError(f"unknown argument {given[0]!r}; see --help")
        settings = OperatorSettings.load()
    except ConfigurationError as error:
        print(f"tidework-operator: {error}", file=sys.stderr)
        return MISCONFIGURED
    configure_logs(settings.log_format, settings.log_level, replica=settings.identity)
    try:
        asyncio.run(run_operator(settings))
    except ConfigurationError as error:
        logger.error("%s", error, extra={"event": "operator_misconfigured"})  # noqa: TRY400 - its text says all
        return MISCONFIGURED
    except Exception:
        logger.critical(
            "a part of the operator failed, so all of it ends",
            exc_info=True,
            extra={"event": "operator_failed"},
        )
        return FAILED
    return OK


async def run_operator(settings: OperatorSettings) -> None:
    """Until SIGTERM or SIGINT. Raises ConfigurationError for what cannot start."""
    # Takes seconds to import, which --help and a wrong setting need not wait for.
    from tidework_operator.kube import connect

    loop = asyncio.get_running_loop()
    accept_signals()
    signals = (signal.SIGTERM, signal.SIGINT)

    def take_signals() -> None:
        for number in signals:
            loop.add_signal_handler(number, service.stop)

    cluster = await connect(settings.kubeconfig, version=_version())
    service = OperatorService(
        settings,
        cluster,
        cluster.access,
        SystemClock(),
        version=_version(),
        take_signals=take_signals,
    )
    probes = ProbeServer(settings.probe_host, settings.probe_port, service.health)
    logger.info(
        "the operator starts",
        extra={"event": "operator_started", "cluster": cluster.address, "port": probes.port},
    )
    take_signals()
    try:
        await service.run()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
        probes.close()
        await cluster.close()


def _version() -> str:
    try:
        return metadata.version("tidework-operator")
    except metadata.PackageNotFoundError:
        return "0"


def _help() -> str:
    names = sorted(OperatorSettings.model_fields)
    about = OperatorSettings.__doc__ or ""
    variables = "\n".join(f"  TIDEWORK_{name.upper()}" for name in names if name != "namespace")
    return f"Usage: tidework-operator [--help | --version]\n\nVariables:\n{variables}\n\n{about}"


if __name__ == "__main__":
    sys.exit(main())
