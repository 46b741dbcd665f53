"""Messages about what Relay does, on standard error, where the environment asks for them.

RELAY_LOG=compile     each compilation: for which types, whether it was found on disk, and why not
"""

from __future__ import annotations

import logging
import os
import sys

TOPICS = ("compile",)


def configure() -> None:
    """Show what RELAY_LOG names, a list with commas. Unknown names are reported on standard error."""
    for topic in filter(None, (part.strip() for part in os.environ.get("RELAY_LOG", "").split(","))):
        if topic not in TOPICS:
            print(f"RELAY_LOG: there is no topic {topic!r}; the topics are {', '.join(TOPICS)}", file=sys.stderr)
            continue
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("relay: %(message)s"))
        logger = logging.getLogger(f"relay.{topic}")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
