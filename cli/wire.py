"""Look at the protocol, for people who debug clients.

trilogue wire show                       every API: key, versions, from when on flexible
trilogue wire show Fetch                 its fields, and in which versions each is there
trilogue wire decode 00120003...         a captured frame, as JSON
trilogue wire decode --response Fetch --version 12 answer.bin
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trilogue.cli.failed import Failed

if TYPE_CHECKING:
    from trilogue.wire.schema import Body, Declaration, Field


def add_to(wire: argparse.ArgumentParser) -> None:
    verbs = wire.add_subparsers(metavar="VERB")

    show = verbs.add_parser("show", help="the fields of an API, by version", description="The fields of an API.")
    show.add_argument("api", nargs="?", help="name or key, such as Fetch or 1; without it, all of them")
    show.add_argument("--version", type=int, help="only what this version has")
    show.set_defaults(run=run_show)

    decode = verbs.add_parser("decode", help="bytes to JSON", description="Bytes to JSON, record batches included.")
    decode.add_argument("source", help="hex digits, a file with a frame (binary or hex), or - for stdin")
    decode.add_argument("--response", metavar="API", help="the bytes are an answer of this API; needs --version")
    decode.add_argument(
        "--message", metavar="NAME", help="the bytes are this message, without a header: OffsetCommitValue"
    )
    decode.add_argument("--version", type=int, help="of the answer or message; requests say theirs")
    decode.set_defaults(run=run_decode)


# -- show ------------------------------------------------------------------------------------------


def run_show(options: argparse.Namespace) -> None:
    if options.api is None:
        show_all()
        return
    for message in find(options.api):
        check_version(message, options.version)
        print(f"{message.__name__} (key {message.api_key}, versions {message.versions}, flexible {message.flexible})")
        rows = list(field_rows(message, options.version, depth=1))
        width = max([len(name) for name, *_ in rows], default=0)
        for name, kind, *notes in rows:
            print(f"{name:{width}}  {kind:12}  {'  '.join(notes)}".rstrip())
        print()


def show_all() -> None:
    from trilogue.wire.catalog import requests

    print(f"{'key':>3}  {'API':38} {'versions':9} flexible")
    for key, message in sorted(requests().items()):
        name = message.__name__.removesuffix("Request")
        print(f"{key:3}  {name:38} {message.versions!s:9} {message.flexible}")


def field_rows(struct: "Declaration", version: int | None, depth: int) -> Any:
    from trilogue.wire.schema import is_struct

    for spec in struct.fields.values():
        if version is None or version in spec.rule.versions:
            yield "  " * depth + spec.name, kind_of(spec), *notes_on(spec)
            if is_struct(spec.kind):
                yield from field_rows(spec.kind, version, depth + 1)


def kind_of(spec: "Field") -> str:
    from trilogue.wire.schema import is_struct

    kind = spec.kind.__name__ if is_struct(spec.kind) else spec.kind.name.lower()
    return f"[{kind}]" if spec.is_list else kind


def notes_on(spec: "Field") -> list[str]:
    from trilogue.wire.schema import ALWAYS

    notes = []
    if spec.rule.versions != ALWAYS:
        notes.append(f"v{spec.rule.versions}")
    if spec.optional:
        notes.append("nullable" if spec.rule.nullable == ALWAYS else f"nullable v{spec.rule.nullable}")
    if spec.rule.tag is not None:
        notes.append(f"tag {spec.rule.tag}")
    if spec.rule.default is not ...:
        notes.append(f"default {json.dumps(spec.rule.default)}")
    return notes


# -- decode ----------------------------------------------------------------------------------------


def run_decode(options: argparse.Namespace) -> None:
    from trilogue.wire.errors import MalformedMessage

    data = read_source(options.source)
    if (options.response or options.message) and options.version is None:
        raise Failed("--version is needed: neither answers nor bare messages say theirs")
    try:
        if options.message:
            decoded = decode_message(data, options.message, options.version)
        elif options.response:
            decoded = decode_response(unframed(data), options.response, options.version)
        else:
            decoded = decode_request(unframed(data))
    except MalformedMessage as error:
        raise Failed(str(error)) from None
    json.dump(decoded, sys.stdout, indent=2, ensure_ascii=False)
    print()


def read_source(source: str) -> bytes:
    if source == "-":
        raw = sys.stdin.buffer.read()
    elif (data := from_hex(source)) is not None:
        return data
    else:
        try:
            raw = Path(source).read_bytes()
        except OSError as error:
            raise Failed(f"{source} is neither hex digits nor a file that can be read: {error.strerror}") from None
    text = from_hex(raw.decode("ascii", "ignore")) if raw.isascii() else None
    return raw if text is None else text


def from_hex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text.replace(":", " ").removeprefix("0x")) or None
    except ValueError:
        return None


def unframed(data: bytes) -> memoryview:
    """Without the size before it, if there is one."""
    if len(data) >= 4 and int.from_bytes(data[:4], "big") == len(data) - 4:
        data = data[4:]
    return memoryview(data)


def decode_request(frame: memoryview) -> dict[str, Any]:
    from trilogue.wire.catalog import requests
    from trilogue.wire.frame import read_header, read_request

    header = read_header(frame)
    message = requests().get(header.key)
    if message is None:
        raise Failed(f"no API has the key {header.key}: not a request, or one between brokers; see --response")
    check_version(message, header.version)
    return {
        "message": message.__name__,
        "version": header.version,
        "correlation_id": header.correlation_id,
        "client_id": header.client_id,
        "body": as_json(read_request(frame, header, message), header.version),
    }


def decode_response(frame: memoryview, api: str, version: int) -> dict[str, Any]:
    from trilogue.wire.frame import read_response

    message = find(api)[1]
    check_version(message, version)
    correlation_id, response = read_response(frame, message, version)
    return {
        "message": message.__name__,
        "version": version,
        "correlation_id": correlation_id,
        "body": as_json(response, version),
    }


def decode_message(data: bytes, name: str, version: int) -> dict[str, Any]:
    from trilogue.wire.catalog import everything
    from trilogue.wire.codec import parse

    known = {it.__name__.lower(): it for it in everything()}
    message = known.get(name.lower())
    if message is None:
        raise Failed(f"there is no message {name}; `trilogue wire show` lists the APIs")
    check_version(message, version)
    return {"message": message.__name__, "version": version, "body": as_json(parse(message, version, data), version)}


def as_json(value: Any, version: int) -> Any:
    """A message as JSON: only the fields its version has."""
    from trilogue.wire.ids import uuid_text
    from trilogue.wire.schema import Kind, Struct

    if isinstance(value, list):
        return [as_json(each, version) for each in value]
    if not isinstance(value, Struct):
        return value
    shown = {}
    for name, spec in type(value).fields.items():
        if version in spec.rule.versions:
            inside = getattr(value, name)
            if spec.kind is Kind.RECORDS and inside is not None:
                shown[name] = records_as_json(inside)
            elif spec.kind is Kind.UUID:
                shown[name] = [uuid_text(each) for each in inside] if spec.is_list else uuid_text(inside)
            elif isinstance(inside, bytes):
                shown[name] = bytes_text(inside)
            else:
                shown[name] = as_json(inside, version)
    return shown


def records_as_json(data: memoryview) -> Any:
    """Batches and their records; what is not made of batches of the current format stays hex."""
    from trilogue.wire.errors import MalformedMessage
    from trilogue.wire.records import batches

    try:
        return [batch_as_json(batch) for batch in batches(data, partial_ok=True)]
    except MalformedMessage as error:
        return {"undecoded": str(error), "hex": bytes(data).hex()}


def batch_as_json(batch: Any) -> dict[str, Any]:
    header = batch.header
    return {
        **header._asdict(),
        "crc_ok": batch.crc_ok(),
        "codec": header.codec.name.lower(),
        "transactional": header.transactional,
        "control": header.control,
        "records": [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": bytes_text(record.key),
                "value": bytes_text(record.value),
                "headers": [[name, bytes_text(value)] for name, value in record.headers],
            }
            for record in batch.records()
        ],
    }


def bytes_text(raw: Any) -> Any:
    """Text where it is text a person can read, else hex."""
    if raw is None:
        return None
    data = bytes(raw)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}
    return text if text.isprintable() else {"hex": data.hex()}


# -- both ------------------------------------------------------------------------------------------


def find(api: str) -> tuple[Any, Any]:
    """The request and the response of an API, by name in any case, or by key."""
    from trilogue.wire.catalog import requests, responses

    wanted = api.lower().removesuffix("request").removesuffix("response").replace("_", "").replace("-", "")
    for key, message in requests().items():
        if wanted in (str(key), message.__name__.removesuffix("Request").lower()):
            return message, responses()[key]
    raise Failed(f"there is no API {api}; `trilogue wire show` lists them")


def check_version(message: "type[Body]", version: int | None) -> None:
    if version is not None and version not in message.versions:
        raise Failed(f"{message.__name__} has versions {message.versions}, not {version}")
