"""What an answer of the API server means for whoever wrote the TaskQueue. Pure.

Its words are about the Deployment, and where a type is wrong they are Go's. Here they become the
field of the TaskQueue and what it has to be.
"""

from __future__ import annotations

import re

from tidework_operator.cluster import ClusterError
from tidework_operator.observations import Trouble

_TYPED = re.compile(r"failed to create typed (?:patch|live) object \([^()]*\): (?:errors:)?")
_CONVERTED = re.compile(
    r"failed to convert new object \([^()]*\) to proper version: "
    r"(?:unable to convert unstructured object to [^:]*: )?"
)
_TYPE = re.compile(r"expected (?P<kind>map|list|string|numeric|boolean)[^,]*, got (?P<found>.*)")
_INVALID = re.compile(r'Deployment\.apps "[^"]*" is invalid: ')
_KINDS = {
    "map": "a mapping",
    "list": "a list",
    "string": "text (put it in quotes)",
    "numeric": "a number",
    "boolean": "true or false",
}
_UNKNOWN = "field not declared in schema"
_WORKER = re.compile(r"\.?spec\.template\.spec\.containers\[(?:0|name=\"worker\")\]\.(\w+)")
_OF_TEMPLATE = {
    "volumeMounts": "spec.template.spec.volumeMounts",
    "envFrom": "spec.template.spec.envFrom",
    "securityContext": "spec.template.spec.containerSecurityContext",
}
"""Fields of the worker container that do not stand in the TaskQueue's spec itself."""


def trouble_of(error: ClusterError) -> Trouble:
    """What is wrong, and what to do."""
    said = error.reason
    if "being terminated" in said or (error.status == 404 and said.startswith("namespaces ")):
        return Trouble("NamespaceTerminating", f"the namespace is going away: {said}")
    if error.is_forbidden and "quota" in said:
        return Trouble("QuotaExceeded", f"{said}; raise the ResourceQuota of the namespace")
    if error.is_forbidden:
        return Trouble(
            "Forbidden",
            f"the API server refuses ({error.doing}: {said}); the operator's role (chart) or an "
            "admission policy of the cluster has to allow it",
        )
    # Server-side apply answers 500 to a field that the schema does not have, or of another type.
    if error.status in (400, 422) or "typed patch object" in said or _CONVERTED.match(said):
        words = in_terms_of_the_spec(said)
        return Trouble("SpecRefused", f"the API server refuses what the spec asks for: {words}")
    return Trouble("ApiServerTrouble", f"{error}; trying again")


def in_terms_of_the_spec(said: str) -> str:
    """An answer about the Deployment, as one about the TaskQueue that it was made from."""
    found = _INVALID.sub("", _CONVERTED.sub("", said))
    if _TYPED.match(found):
        lines = [line.strip() for line in _TYPED.sub("", found).splitlines()]
        found = "; ".join(_typed(line) for line in lines if line)
    return _WORKER.sub(lambda at: _OF_TEMPLATE.get(at[1], f"spec.{at[1]}"), found)


def _typed(line: str) -> str:
    place, _, reason = line.partition(": ")
    place = place.removeprefix(".")
    if reason == _UNKNOWN:
        return f"{place}: Kubernetes has no such field here; correct its name, or remove it"
    if wrong := _TYPE.match(reason):
        return f"{place}: has to be {_KINDS[wrong['kind']]}"
    return f"{place}: {reason}"
