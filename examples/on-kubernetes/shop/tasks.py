"""The shop's tasks. A worker pod imports this module once: `app: shop.tasks` in tidework.yaml."""

from __future__ import annotations

import os
import smtplib
from email.message import EmailMessage

from tidework import Bury, Tidework

app = Tidework("shop", queue="emails")


@app.task(max_attempts=5, timeout=30)
def send(to: str, subject: str) -> dict[str, str]:
    """Send through the server that SMTP_HOST names; without one the pod's log gets the message."""
    if "@" not in to:
        # a dead letter at once; any other error is retried with backoff
        raise Bury(f"{to!r} is no address")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@example.org", to, subject
    message.set_content("Greetings from the shop.")
    if server := os.environ.get("SMTP_HOST"):
        with smtplib.SMTP(server, timeout=20) as connection:
            connection.send_message(message)
    else:
        print(message)
    return {"sent": to, "by": os.environ.get("HOSTNAME", "")}
