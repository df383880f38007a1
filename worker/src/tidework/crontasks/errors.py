"""Why a person's request about a CronTask is refused."""

from __future__ import annotations

from tidework.errors import TideworkError
from tidework.meant import did_you_mean, listed
from tidework.model.fire import Suspension


class CronTaskNotFoundError(TideworkError):
    """No CronTask of that name is mirrored in the namespace. known: those that are"""

    def __init__(self, name: str, namespace: str, known: tuple[str, ...] = ()) -> None:
        self.name = name
        self.namespace = namespace
        self.known = known
        names = sorted(known)
        super().__init__(
            f"no CronTask {name!r} is mirrored in namespace {namespace!r}"
            f"{did_you_mean(name, names) or ''} (known: {listed(names)}); "
            "is its scheduler, operator or `tidework dev` running?"
        )


class SuspendedByDocumentError(TideworkError):
    """A CronTask rests because its document says so. ended: a person's suspension was ended"""

    def __init__(self, name: str, namespace: str, *, ended: bool) -> None:
        self.name = name
        self.namespace = namespace
        self.ended = ended
        also = "a person's suspension was ended, but " if ended else ""
        super().__init__(
            f"CronTask {name!r} of namespace {namespace!r} rests: {also}its document has suspend: "
            "true. Set it to false there: in the file that its scheduler reads, or in the cluster "
            f"""(kubectl patch crontask {name} -n {namespace} --type merge """
            """-p '{"spec":{"suspend":false}}')"""
        )


class AlreadySuspendedError(TideworkError):
    """Somebody has the CronTask suspended already, and that stays."""

    def __init__(self, name: str, suspension: Suspension) -> None:
        self.name = name
        self.suspension = suspension
        since = suspension.since.isoformat(timespec="seconds")
        super().__init__(
            f"CronTask {name!r} was suspended by {suspension.by} since {since}: "
            f"{suspension.reason}. Resume it first to change that"
        )
