"""An application that starts a thread at import: no process of it may be forked."""

from __future__ import annotations

import os
import threading

from tidework.app import Tidework

app = Tidework("threads", queue="jobs")
stop = threading.Event()
threading.Thread(target=stop.wait, name="stubborn", daemon=True).start()


@app.task
def whoami() -> dict[str, object]:
    return {"pid": os.getpid(), "threads": [thread.name for thread in threading.enumerate()]}
