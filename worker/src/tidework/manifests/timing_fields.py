"""The forms of the fields that say when a CronTask fires: what Python checks, what CEL checks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field, WithJsonSchema

from tidework.errors import ScheduleError
from tidework.manifests.cron_form import FORM, FORM_IN_WORDS
from tidework.manifests.part import Form, cel, cel_rules, cel_text
from tidework.manifests.timing import SPREAD, duration_of, interval_of, reason_of
from tidework.model.schedules.cron import parse_cron
from tidework.model.schedules.cron_parse import DESCRIPTORS, MAX_LENGTH
from tidework.model.schedules.exclusion import parse_exclusions


def _whole_second(found: datetime) -> datetime:
    if found.microsecond:
        raise ValueError("has a fraction of a second; fires lie on whole seconds, so drop it")
    return found.astimezone(UTC)


Moment = Annotated[
    AwareDatetime,
    AfterValidator(_whole_second),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "maxLength": 40}
        | cel_rules(
            cel(
                "self.getMilliseconds() == 0",
                "has a fraction of a second; fires lie on whole seconds, so drop it",
            )
        )
    ),
]

_FIVE_OR_SIX = r"self.matches('^[ \\t]*[!-~]+([ \\t]+[!-~]+){4,5}[ \\t]*$')"
_IS_DESCRIPTOR = f"self in [{', '.join(repr(name) for name in DESCRIPTORS)}]"
# What a pattern cannot know of a schedule, the condition ScheduleValid tells.
_SCHEDULE_RULES = cel_rules(
    cel(
        "!self.contains('TZ=')",
        "TZ= inside the schedule is not served; name the zone in the field timeZone",
    ),
    cel(
        f"{_FIVE_OR_SIX} || {_IS_DESCRIPTOR}",
        "write five fields (minute hour day-of-month month day-of-week), six with the second in "
        f"front, or one of {', '.join(DESCRIPTORS)}",
    ),
    cel(f"!{_FIVE_OR_SIX} || self.matches('^{cel_text(FORM)}$')", FORM_IN_WORDS),
)
_INTERVAL = "self.matches('^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$')"
_EVERY_RULES = cel_rules(
    cel(
        f"{_INTERVAL} && self.matches('[1-9]')",
        "write an interval of 1s or more as 90s, 5m, 1h30m or 1d",
    )
)
_PHASE_RULES = cel_rules(
    cel(
        f"self == '{SPREAD}' || {_INTERVAL} && self != ''",
        f"write a part of the interval as 30s, 5m or 1h, or {SPREAD} to spread by name",
    )
)
_ZONE_WORDS = "use an IANA name of a time zone, such as Europe/Berlin or UTC"
ZONE_RULES = cel_rules(
    cel("self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$') && self != 'Local'", _ZONE_WORDS),
    # The API server has the zones for CronJobs; to look one up that it lacks ends the rule.
    cel("timestamp('2000-01-01T00:00:00Z').getFullYear(self) > 0", _ZONE_WORDS),
)


def _refusing(check: Callable[[str], object]) -> AfterValidator:
    """A check of text that raises ScheduleError for what is refused."""

    def validate(found: str) -> str:
        try:
            check(found)
        except ScheduleError as error:
            raise ValueError(reason_of(error)) from error
        return found

    return AfterValidator(validate)


def _read_cron(text: str) -> None:
    # What H stands for the document knows, which has the name.
    parse_cron(text, spread="")


def _read_phase(text: str) -> None:
    if text != SPREAD:
        duration_of(text)


CronText = Annotated[
    str,
    Field(max_length=MAX_LENGTH, json_schema_extra=_SCHEDULE_RULES),
    _refusing(_read_cron),
]
_DAY = "([0-9]{4}-)?(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_DAY_RULES = cel_rules(
    cel(f"self.matches('^{_DAY}([.][.]{_DAY})?$')", "write months as 01-12 and days as 01-31")
)
ExcludedDays = Annotated[
    str,
    Field(max_length=22, json_schema_extra=_DAY_RULES),
    Form(
        r"([0-9]{4}-)?[0-9]{2}-[0-9]{2}([.][.]([0-9]{4}-)?[0-9]{2}-[0-9]{2})?",
        "write days as 2026-12-25, 2026-12-24..2027-01-01, 12-25 (every year) or 12-24..01-01",
    ),
    _refusing(lambda text: parse_exclusions([text])),
]
Interval = Annotated[
    str, Field(max_length=40, json_schema_extra=_EVERY_RULES), _refusing(interval_of)
]
Phase = Annotated[str, Field(max_length=40, json_schema_extra=_PHASE_RULES), _refusing(_read_phase)]
