"""Jobs as they are answered: without the values that nobody is to see (access/redaction.py)."""

from __future__ import annotations

from typing import Any, TypeVar

from tidework.access.redaction import Redaction, Redactor
from tidework.api.models.jobs import SHORT, JobDetail, JobModel, TracedErrorModel

JobT = TypeVar("JobT", bound=JobModel)


def redacted_job(found: JobT, redaction: Redaction) -> JobT:
    """The same job; ``redacted_fields`` names what is not shown."""
    redactor = Redactor(redaction)
    shown: dict[str, Any] = {"params": redactor.value("params", found.params)}
    if isinstance(found, JobDetail):
        shown["result"] = redactor.value("result", found.result)
        shown["checkpoints"] = redactor.value("checkpoints", found.checkpoints)
        if found.document is not None:
            shown["document"] = redactor.text("document", found.document)
        if found.progress is not None:
            note = redactor.text("progress.note", found.progress.note)
            shown["progress"] = found.progress.model_copy(update={"note": note})
        shown["history"] = [
            each.model_copy(update={"cause": redactor.text(f"history.{index}.cause", each.cause)})
            for index, each in enumerate(found.history)
        ]
    if found.error is not None:
        texts = {"message": redactor.text("error.message", found.error.message)}
        if isinstance(found.error, TracedErrorModel):
            texts["trace"] = redactor.text("error.trace", found.error.trace)
        else:
            texts["message"] = texts["message"][:SHORT]
        shown["error"] = found.error.model_copy(update=texts)
    return found.model_copy(update={**shown, "redacted_fields": redactor.fields})
