"""The cluster of the end-to-end tests without the tests: `python -m tests.e2e.rig up|down`.

`up` makes it, or finds it, and lets it stay; it prints what a shell needs to reach it. `down`
deletes every cluster that the rig made and stops the Docker engine that it started.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace

from tests.e2e.rig.commands import CommandError
from tests.e2e.rig.kind import KindCluster, our_clusters
from tests.e2e.rig.machine import prepare_machine, unprepared
from tests.e2e.rig.options import Options, RigError, read_options


def up(options: Options) -> None:
    """Make the cluster answer."""
    machine = prepare_machine(options)
    kind = KindCluster(machine, options)
    with machine.alone():
        kind.ensure()
    for name in ("PATH", "KUBECONFIG"):
        print(f"export {name}={shlex.quote(kind.cluster.environment[name])}")


def down(options: Options) -> None:
    """Delete what the rig made; images stay in the cache."""
    names = our_clusters(options.cache)
    machine = prepare_machine(options) if names else unprepared(options)
    with machine.alone():
        for name in names:
            KindCluster(machine, replace(options, cluster=name)).delete()
        machine.make("engine", "stop")


COMMANDS = {"up": up, "down": down}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
        sys.exit("usage: python -m tests.e2e.rig up|down")
    try:
        COMMANDS[sys.argv[1]](read_options(os.environ))
    except (RigError, CommandError) as error:
        sys.exit(f"error: {error}")
