"""Strategies for what foreign programs may put into an inbox, and a reader that is not ours.

Documents are composed as text, member by member: a JSON library could write neither a key twice
nor NaN, half a surrogate pair or 1e400.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

ODD = {
    "more than a double": "1e400",
    "NaN": "NaN",
    "infinity": "-Infinity",
    "400 digits": "9" * 400,
    "5000 digits": "-" + "9" * 5000,
    "no number": "01",
    "90 deep": "[" * 90 + "]" * 90,
    "98 deep": '{"a":' * 98 + "1" + "}" * 98,
    "99 deep": "[" * 99 + "]" * 99,
    "900 deep": "[" * 900 + "]" * 900,
    "985 deep": '{"a":' * 985 + "1" + "}" * 985,
    "too deep": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "half a pair": r'"\ud800"',
    "a wrong pair": r'"\udc00\ud800"',
    "a pair": r'"\ud83d\ude00"',
    "control characters": r'"a\u0000\n\u001f"',
    "a raw control character": '"a\nb"',
    "twice the same key": '{"a": 1, "a": 2}',
    "the same key in disguise": r'{"a": 1, "\u0061": 2}',
    "an object": '{"a": 1, "b": {"a": 2}}',
    "null": "null",
    "a key": r'{"key": "k", "until": "\ud800"}',
    "a ttl": '{"key": "k", "until": "ttl", "ttl": ' + "9" * 400 + "}",
    "a megabyte": '"' + "x" * 1_100_000 + '"',
    "a megabyte and half a pair": '"' + "x" * 1_100_000 + r'\ud800"',
}
"""JSON that is not, or not for everybody, or only just."""
BYTES = {
    "a byte order mark": b"\xef\xbb\xbf" + b'{"id":"mark","task":"t","created_at":1}',
    "UTF-16": '{"id":"wide","task":"t","created_at":1}'.encode("utf-16-le"),
    "UTF-32": '{"id":"wider","task":"t","created_at":1}'.encode("utf-32"),
    "half a pair in UTF-8": b'{"id":"half","task":"t","created_at":1,"x":"\xed\xa0\x80"}',
    "a megabyte of nothing": b"\xff" * 1_100_000,
    "a megabyte as task": b'{"task":"' + b"x" * 1_100_000 + b'"}',
    "two documents": b'{"task":"t"}{"task":"t"}',
    "nothing": b"",
    "a nul after the end": b'{"task":"t"}\x00',
}
FIELDS = (
    "v", "id", "task", "params", "priority", "available_at", "created_at", "max_attempts",
    "timeout", "unique", "trace", "group", "limit_key", "batch_id", "parent_id", "params_ref",
    "x-unknown",
)  # fmt: skip
IDS = (r'"a\u0000b"', r'"a\nb"', '"a\x7fb"', '""', '" a"', '"' + "a" * 129 + '"', "null")
VERSIONS = ("1", "2", "3000000000", "0", "1.0", '"1"', "null", "true")
_CHARACTERS = st.characters(codec="utf-8")


class Raw(bytes):
    """Bytes that a report of a failure can show."""

    def __repr__(self) -> str:
        if len(self) < 300:
            return f"Raw({bytes(self)!r})"
        return f"<{bytes(self[:120])!r} and {len(self) - 120} bytes more>"


def _scalars() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.sampled_from([2**53 + 1, 2**63 - 1, 2**63, 2**64, -(10**60)]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(_CHARACTERS, max_size=20),
    )


def values() -> st.SearchStrategy[Any]:
    """What JSON can say, for everybody."""
    keys = st.text(_CHARACTERS, max_size=10)
    return st.recursive(
        _scalars(),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)
        ),
        max_leaves=6,
    )


def json_texts() -> st.SearchStrategy[str]:
    """As ``values``, written in either way, or something odd."""
    plain = st.builds(json.dumps, values(), ensure_ascii=st.booleans())
    return st.one_of(plain, st.sampled_from(sorted(ODD)).map(ODD.__getitem__))


def envelopes() -> st.SearchStrategy[Raw]:
    """Nearly a job: a few fields of a good one are odd, come twice, or are not there."""
    field = st.sampled_from(FIELDS)
    return st.builds(
        _envelope,
        id=st.one_of(st.from_regex(r"\A[a-z0-9]{12}\Z").map(json.dumps), st.sampled_from(IDS)),
        version=st.sampled_from(VERSIONS),
        params=st.lists(st.tuples(st.sampled_from(["a", "b", "\u00fc"]), json_texts()), max_size=3),
        odd=st.lists(st.tuples(field, json_texts()), max_size=2),
        left_out=st.sets(field, max_size=9),
        twice=field,
    )


def _envelope(
    *,
    id: str,
    version: str,
    params: list[tuple[str, str]],
    odd: list[tuple[str, str]],
    left_out: set[str],
    twice: str,
) -> Raw:
    members = {"task": '"t"', "id": id, "created_at": "1700000000.25", "v": version}
    members["params"] = _object_text(params)
    members = {name: text for name, text in members.items() if name not in left_out} | dict(odd)
    # One field in many comes twice: those that are left out as well.
    again = [(twice, members[twice])] if twice in members and twice in left_out else []
    return Raw(_object_text([*members.items(), *again]).encode())


def _object_text(members: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in members) + "}"


def _damage(raw: Raw, place: int, length: int, instead: bytes) -> Raw:
    place %= len(raw) + 1
    return Raw(raw[:place] + instead + raw[place + length :])


def documents() -> st.SearchStrategy[Raw]:
    """Any bytes but the marker, which is no document."""
    damaged = st.builds(
        _damage, envelopes(), st.integers(0, 10_000), st.integers(0, 3), st.binary(max_size=3)
    )
    found = st.one_of(
        envelopes(),
        damaged,
        json_texts().map(lambda text: Raw(text.encode())),
        st.binary(max_size=50).map(Raw),
        st.sampled_from(sorted(BYTES)).map(lambda name: Raw(BYTES[name])),
    )
    return found.filter(lambda raw: raw != b"!")


def params_of(raw: bytes) -> Any:
    """The params as another program would read them: every key, every digit of an integer."""
    members = json.loads(raw, object_pairs_hook=lambda pairs: ("object", pairs))
    assert members[0] == "object"
    return dict(members[1]).get("params") or ("object", [])


def read_strictly(raw: bytes) -> Any:
    """JSON as every reader understands it alike. Raises ValueError for anything else."""
    found = json.loads(raw.decode(), object_pairs_hook=_object, parse_float=_float)
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def _float(text: str) -> float:
    if abs(float(text)) == float("inf"):
        raise ValueError(f"{text} is more than a double holds")
    return float(text)


def good_documents() -> st.SearchStrategy[dict[str, Any]]:
    """Jobs as any JSON library writes them, unknown fields included."""
    names = st.text(_CHARACTERS, min_size=1, max_size=10)
    return st.fixed_dictionaries(
        {"task": st.just("t"), "params": st.dictionaries(names, values(), max_size=4)},
        optional={
            "id": st.from_regex(r"\A[a-z0-9]{8,20}\Z"),
            "v": st.just(1),
            "created_at": st.floats(0, 2e9),
            "priority": st.integers(0, 9),
            "x-unknown": values(),
            "group": st.one_of(st.none(), st.text(_CHARACTERS, max_size=20)),
        },
    )
