"""Quantities of Kubernetes: their form, and which of two is larger."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from tidework.manifests.part import Form, cel, cel_rules, cel_text

_QUANTITY = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?"
_QUANTITY_RULE = "write a quantity of Kubernetes such as 500m, 2, 256Mi or 1.5Gi"
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {f"{letter}i": 10 * at for at, letter in enumerate("KMGTPE", 1)}

KNOWN = ("cpu", "memory", "ephemeral-storage")

ABOVE_LIMIT = "a request is above its limit; lower it, or raise the limit"
UNKNOWN = (
    f"there is no such resource; use {', '.join(KNOWN)}, hugepages-SIZE, or the full name of a "
    "device such as example.com/gpu"
)


def _as_text(found: Any) -> Any:
    """A whole number is a quantity too: ``cpu: 2``."""
    return str(found) if type(found) is int else found


Quantity = Annotated[
    str,
    Field(max_length=64),
    Form(_QUANTITY, _QUANTITY_RULE),
    BeforeValidator(_as_text),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "maxLength": 64,
        }
        | cel_rules(
            cel(
                f"type(self) == int ? self >= 0 : self.matches('^({cel_text(_QUANTITY)})$')",
                _QUANTITY_RULE,
            )
        )
    ),
]

_KNOWN_IN_CEL = (
    f"name in [{', '.join(repr(name) for name in KNOWN)}] || name.startsWith('hugepages-') "
    "|| name.contains('/')"
)


def resource_rules() -> tuple[dict[str, str], ...]:
    """What the API server checks of requests and limits together."""
    above = (
        "!has(self.requests) || !has(self.limits) || self.requests.all(name, "
        "!(name in self.limits) || !isQuantity(string(self.requests[name])) || "
        "!isQuantity(string(self.limits[name])) || quantity(string(self.requests[name]))"
        ".compareTo(quantity(string(self.limits[name]))) <= 0)"
    )
    return (
        cel(above, ABOVE_LIMIT, "requests"),
        *(
            cel(f"!has(self.{part}) || self.{part}.all(name, {_KNOWN_IN_CEL})", UNKNOWN, part)
            for part in ("requests", "limits")
        ),
    )


def resource_faults(
    requests: Mapping[str, str], limits: Mapping[str, str]
) -> list[tuple[str | tuple[str, ...], str]]:
    """The same, with the names at fault."""
    faults: list[tuple[str | tuple[str, ...], str]] = []
    for name, requested in requests.items():
        limit = limits.get(name)
        if limit is not None and amount_of(requested) > amount_of(limit):
            words = f"{name}: {requested} is above the limit, which is {limit}; lower it, or raise"
            faults.append(("requests", f"{words} the limit"))
    for part, names in (("requests", requests), ("limits", limits)):
        faults += [(part, f"{name!r}: {UNKNOWN}") for name in names if not _is_known(name)]
    return faults


def amount_of(quantity: str) -> Fraction:
    """The number that a quantity stands for; it has to be of the right form."""
    for suffix, power in _BINARY.items():
        if quantity.endswith(suffix):
            return Fraction(_digits(quantity.removesuffix(suffix))) * (1 << power)
    if quantity[-1].isalpha():
        return Fraction(_digits(quantity[:-1])) * Fraction(10) ** _POWERS[quantity[-1]]
    number, _, exponent = quantity.lower().partition("e")
    # Bounded as Kubernetes bounds it: nobody has 10^18 of anything, nor less than a billionth.
    power = max(-40, min(40, int(exponent or "0")))
    return Fraction(_digits(number)) * Fraction(10) ** power


def _digits(text: str) -> str:
    return f"0{text}0" if "." in text else text


def _is_known(name: str) -> bool:
    return name in KNOWN or name.startswith("hugepages-") or "/" in name
