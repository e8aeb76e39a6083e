"""Keys and values as people write them: text, JSON, hex, base64.

text    the bytes as they are
json    one JSON document to a line
hex     two digits to a byte
base64  as in RFC 4648
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trilogue.cli.failed import Failed

FORMATS = ("text", "json", "hex", "base64")
ESCAPES = {"\\t": "\t", "\\n": "\n", "\\0": "\0", "\\\\": "\\"}

Bytes = bytes | bytearray | memoryview


def read(text: bytes, form: str) -> bytes:
    """What somebody has written, as the bytes it stands for."""
    try:
        match form:
            case "json":
                json.loads(text)
            case "hex":
                return bytes.fromhex(text.decode("ascii"))
            case "base64":
                from base64 import b64decode

                return b64decode(text, validate=True)
    except ValueError as error:
        raise Failed(f"{shortened(text)} is not {form}: {error}") from None
    return text


def write(data: Bytes, form: str) -> bytes:
    """Bytes, as somebody reads them."""
    match form:
        case "json":
            return json.dumps(as_json(data, form), ensure_ascii=False).encode("utf-8", "surrogateescape")
        case "hex":
            return data.hex().encode()
        case "base64":
            from base64 import b64encode

            return b64encode(data)
    return bytes(data)


def as_json(data: Bytes | None, form: str) -> Any:
    """Bytes inside of JSON.  What cannot be shown in the format is an object that says its bytes in hex."""
    if data is None:
        return None
    try:
        match form:
            case "json":
                return json.loads(bytes(data))
            case "text":
                return str(data, "utf-8")
    except ValueError:
        return {"hex": bytes(data).hex()}
    return write(data, form).decode()


def from_json(value: Any, form: str) -> bytes | None:
    """The reverse of `as_json`."""
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"hex"}:
        return read(str(value["hex"]).encode(), "hex")
    if form == "json":
        return json.dumps(value, ensure_ascii=False).encode()
    if not isinstance(value, str):
        raise Failed(f"{shortened(json.dumps(value).encode())} is not a string; --format json takes any JSON")
    return read(value.encode(), form)


def record_from_json(line: bytes, form: str, key_form: str) -> Mapping[str, Any]:
    """A record as `consume --json` prints it: key, value, headers, timestamp; each may be left out.

    Its offset and partition are not looked at: they are those of another topic, as a rule.
    """
    try:
        said = json.loads(line)
    except ValueError as error:
        raise Failed(f"{shortened(line)} is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise Failed(f'{shortened(line)} is not a record; write {{"key": ..., "value": ...}}')
    return {
        "key": from_json(said.get("key"), key_form),
        "value": from_json(said.get("value"), form),
        "headers": [(str(name), from_json(value, "text")) for name, value in headers(said.get("headers") or [])],
        "timestamp": said.get("timestamp"),
    }


def headers(said: Any) -> Sequence[tuple[Any, Any]]:
    """As pairs, for a name may come twice; or, easier to write, as an object."""
    pairs = list(said.items()) if isinstance(said, dict) else said
    if not isinstance(pairs, list) or any(not isinstance(each, list | tuple) or len(each) != 2 for each in pairs):
        raise Failed(f'headers: write {{"name": "value"}} or [["name", "value"]], not {json.dumps(said)}')
    return pairs


def separator(text: str) -> bytes:
    r"""A separator as given on a command line, where \t is easier to type than a tab."""
    for written, meant in ESCAPES.items():
        text = text.replace(written, meant)
    return text.encode()


def shortened(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return repr(shown if len(shown) <= 60 else shown[:57] + "...")
