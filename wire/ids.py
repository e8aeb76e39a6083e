"""Ids of topics, directories and clusters: sixteen bytes, and the way Kafka prints them."""

import base64
import re

SPELLED = re.compile(r"[A-Za-z0-9_-]{22}")


def uuid_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """Raises ValueError for what is not such an id."""
    if not SPELLED.fullmatch(text):
        raise ValueError(f"{text!r} is not the text of an id")
    return base64.urlsafe_b64decode(text + "==")
