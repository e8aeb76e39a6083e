"""Ids of topics, directories and clusters: sixteen bytes, and the way Kafka prints them."""

import base64


def uuid_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """Raises ValueError for what is not such an id."""
    raw = base64.urlsafe_b64decode(text + "==")
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not the text of an id")
    return raw
