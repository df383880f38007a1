"""How a command reaches the cluster: chosen by kubectl's own options, opened and closed around it.

Commands are asynchronous functions over a Cluster; tests hand them one in memory.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from tidework.clock import Clock, SystemClock
from tidework.errors import ConfigurationError
from tidework_operator.cluster import Cluster

FIELD_MANAGER = "kubectl-tidework"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cluster and namespace; '' = what the kubeconfig says. namespace None = all."""

    kubeconfig: str
    context: str
    namespace: str | None


@dataclass(frozen=True, slots=True)
class Session:
    """A cluster that can be asked. namespace: None = all."""

    cluster: Cluster
    namespace: str | None
    clock: Clock


Opener = Callable[[Choice], AbstractAsyncContextManager[Session]]
Command = Callable[..., Awaitable[int | None]]
Answer = TypeVar("Answer")


@asynccontextmanager
async def open_session(choice: Choice) -> AsyncIterator[Session]:
    """The cluster that kubectl would use. Raises ConfigurationError."""
    # Takes seconds to import, which --help need not wait for.
    from tidework_operator.kube import connect, namespace_of

    try:
        cluster = await connect(choice.kubeconfig, context=choice.context)
    except ConfigurationError as error:
        why = error.__cause__ or error
        raise ConfigurationError(
            f"no cluster to ask: {why}; choose one with --kubeconfig or --context"
        ) from error
    namespace = choice.namespace
    if namespace == "":
        namespace = namespace_of(choice.kubeconfig, choice.context)
    try:
        yield Session(cluster, namespace, SystemClock())
    finally:
        await cluster.close()


def with_cluster(*, spans_namespaces: bool = False) -> Callable[[Command], Callable[..., Any]]:
    """Give a command kubectl's options, and a Session as its first argument.

    spans_namespaces: it can look at all of them
    """

    def wrap(command: Command) -> Callable[..., Any]:
        @click.pass_context
        @functools.wraps(command)
        def run(
            here: click.Context,
            /,
            *args: Any,
            namespace: str,
            context: str,
            kubeconfig: str,
            all_namespaces: bool = False,
            **given: Any,
        ) -> int | None:
            choice = Choice(kubeconfig, context, None if all_namespaces else namespace)
            return ask_cluster(here, choice, lambda session: command(session, *args, **given))

        found = cluster_options(run)
        return _ALL_NAMESPACES(found) if spans_namespaces else found

    return wrap


def ask_cluster(
    here: click.Context, choice: Choice, ask: Callable[[Session], Awaitable[Answer]]
) -> Answer:
    """Open a session, ask, close it. For commands that need a cluster only sometimes."""
    opener: Opener = here.obj or open_session

    async def within() -> Answer:
        async with opener(choice) as session:
            return await ask(session)

    return asyncio.run(within())


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """kubectl's own: --kubeconfig, --context, --namespace."""
    for option in _OPTIONS:
        command = option(command)
    return command


_OPTIONS = (
    click.option("--kubeconfig", default="", help="Path of the kubeconfig."),
    click.option("--context", default="", help="Context of the kubeconfig."),
    click.option("-n", "--namespace", default="", help="Namespace.  [default: the context's]"),
)
_ALL_NAMESPACES = click.option(
    "-A", "--all-namespaces", is_flag=True, help="Look at every namespace."
)
