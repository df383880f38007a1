"""A command: reads its job, and does what params.do says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SLEEPER = [sys.executable, "-c", "import time; time.sleep(300)"]


def mark(path: str, text: str) -> None:
    """Leave a mark that appears whole."""
    draft = Path(f"{path}.{os.getpid()}.draft")
    draft.write_text(text)
    draft.rename(path)


def start_family() -> list[int]:
    """A child, one in a session of its own, and one whose parent has ended."""
    near = subprocess.Popen(SLEEPER)
    far = subprocess.Popen(SLEEPER, start_new_session=True)
    code = (
        "import subprocess, sys; "
        f"p = subprocess.Popen({SLEEPER!r}, start_new_session=True, stdout=-3, stderr=-3); "
        "print(p.pid)"
    )
    orphan = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return [os.getpid(), near.pid, far.pid, int(orphan.stdout)]


def main(job: dict[str, Any]) -> int:
    params = job["params"]
    match params.get("do", "tell"):
        case "tell":
            environment = {k: v for k, v in os.environ.items() if "TIDEWORK" in k or "MIS" in k}
            print(json.dumps({"job": job, "environment": environment}))
        case "fail":
            print("cannot go on", file=sys.stderr)
            print(params.get("last", ""))
            return int(params["code"]) if job["attempt"] == 1 else int(params.get("then", 0))
        case "kill":
            os.kill(os.getpid(), params["number"])
        case "hold":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            mark(f"{params['path']}.began", json.dumps(start_family()))
            while not Path(f"{params['path']}.go").exists():
                time.sleep(0.005)
            print('"held"')
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.stdin.read())))
