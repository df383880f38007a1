"""Schedules in plain words, in two languages, by the values that our own parser read."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from tests.support.cron_data import CASES
from tidework.crontasks.language import Language
from tidework.crontasks.words import words_of
from tidework.errors import ScheduleError
from tidework.manifests.timing import Timing


def said(*schedules: str, language: str = "en", **fields: object) -> str:
    timing = Timing(schedules=schedules, **fields)  # type: ignore[arg-type]
    return words_of(timing.schedule("shop/nightly"), timing.exclude, Language(language))


@pytest.mark.parametrize(
    ("schedule", "english", "chinese"),
    [
        ("0 6 * * *", "At 06:00", "在 06:00"),
        ("@hourly", "Every hour", "每小时"),
        (
            "*/5 8-18 * JUL MON-FRI",
            "Every 5 minutes, between 08:00 and 18:59, Monday through Friday, only in July",
            "每 5 分钟, 在 08:00 和 18:59 之间, 星期一 到 星期五, 仅在 七月",
        ),
        ("*/10 * * * * *", "Every 10 seconds", "每 10 秒"),
        ("30 0 6 * * 1", "At 06:00:30, only on Monday", "在 06:00:30, 仅在 星期一"),
        ("0 0 L * *", "At 00:00, on the last day of the month", "在 00:00, 每月的最后一天"),
        (
            "0 0 L-3 * ?",
            "At 00:00, 3 days before the last day of the month",
            "在 00:00, 每月最后一天的前 3 天",
        ),
        (
            "0 0 15W * *",
            "At 00:00, on the weekday nearest day 15 of the month",
            "在 00:00, 每月的 最接近 15 号的平日",
        ),
        (
            "0 0 LW * *",
            "At 00:00, on the last weekday of the month",
            "在 00:00, 每月的最后一个平日",
        ),
        (
            "0 0 * * FRI#2",
            "At 00:00, on the second Friday of the month",
            "在 00:00, 每月的第二个星期五",
        ),
        (
            "0 0 * * 5L",
            "At 00:00, on the last Friday of the month",
            "在 00:00, 每月的最后一个 星期五",
        ),
        (
            "0 0 13 * FRI",
            "At 00:00, on day 13 of the month, or on Friday",
            "在 00:00, 每月的 13 号, 或星期五",
        ),
        (
            "0 0 1,L * *",
            "At 00:00, on day 1 of the month; and also: At 00:00, on the last day of the month",
            "在 00:00, 每月的 1 号; 以及: 在 00:00, 每月的最后一天",
        ),
    ],
)
def test_in_two_languages(schedule: str, english: str, chinese: str) -> None:
    assert said(schedule) == english
    assert said(schedule, language="zh") == chinese


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("30-30 * * * *", "At 30 minutes past the hour"),  # an equal range is one value
        ("59/15 * * * *", "At 59 minutes past the hour"),
        ("5/20 * * * *", "Every 20 minutes, minutes 5 through 45 past the hour"),
        ("0 0 1-31 * MON", "At 00:00"),  # either is enough, and one names every day
        ("0 0 * * MON,*", "At 00:00"),
        ("0 0 *,13 * FRI", "At 00:00, only on Friday"),
        ("0 0 * * 0,2,4,6", "At 00:00, only on Sunday, Tuesday, Thursday, and Saturday"),
        ("0 0 1 */6 *", "At 00:00, on day 1 of the month, only in January and July"),
        ("H(7-7) 3 * * *", "At 03:07"),
    ],
)
def test_by_value_not_by_spelling(schedule: str, words: str) -> None:
    assert said(schedule) == words


def test_what_is_no_cron() -> None:
    at = datetime(2030, 1, 31, 6, tzinfo=UTC)
    assert said(every="90s") == "Every 90 s, counted from 1970-01-01 00:00:00 UTC"
    assert said(every="1h30m", phase="5m") == "Every 90 min, counted from 1970-01-01 00:05:00 UTC"
    assert said(every="2h", language="zh") == "从 1970-01-01 00:00:00 UTC 起每 2 h"
    assert said(every="2d") == "Every 2 d, counted from 1970-01-01 00:00:00 UTC"
    assert said(at=at) == "Once, at 2030-01-31 06:00:00 UTC"
    assert said(at=at, language="zh") == "仅一次, 在 2030-01-31 06:00:00 UTC"
    assert said("0 6 * * *", "0 9 * * *") == "At 06:00; and also: At 09:00"
    assert said("0 6 * * *", exclude=["12-25", "01-01"]) == "At 06:00; not on 12-25, 01-01"


@pytest.mark.parametrize("language", [language.value for language in Language])
def test_every_measured_schedule_has_words(language: str) -> None:
    spoken = 0
    for case in CASES:
        if case.schedule.startswith(("@every", "TZ=", "CRON_TZ=")):
            continue
        try:
            words = said(case.schedule, language=language)
        except ScheduleError:
            continue  # impossible dates
        spoken += 1
        assert words.strip()
        assert "None" not in words
        if language == "zh":
            assert re.search("[A-Za-z]{3}", words) is None, (case.schedule, words)
    assert spoken > 380
