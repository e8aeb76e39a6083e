"""A client as a small program of its own, whatever it is written in.  These are the rules that all of them keep.

    PROGRAM BOOTSTRAP [NAME=VALUE ...]      the settings are the client's own, by its own names

Jobs come in on standard input, one per line: `VERB NAME=VALUE ...`.  Each is answered by a line of JSON on standard
output: an object with what was asked for, or with `error`.  A program does what it is told and holds no opinion:
expectations are the tests' business.

    version                                              -> version
    produce   topic records [partition codec acks idempotent timestamp]
                                                         -> offsets; a timestamp is the first's, then a second apart
    consume   topic count [partition start isolation]    -> records; as many as come within some seconds
    position  topic at [partition]                       -> position; at is earliest, latest or a time in milliseconds
    transact  topic records name end                     a transaction; end is commit or abort
    join      topic group [protocol]                     one member per program
    poll      seconds                                    -> assignment, values; early when there are values
    commit / leave
    create topic partitions [SETTING=VALUE ...] / delete topic / grow topic partitions
    topics -> topics    describe topic -> partitions     configs topic name -> value    alter topic name value
    groups -> groups    describe-group group -> state, members    group-offsets group topic -> offsets
    delete-group group  delete-records topic offset -> low_watermark

Bytes travel in hexadecimal, `-` (in JSON: null) for none.  Records are `key,value,name,value,...;...`.
"""

import json
import queue
import subprocess
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ANSWER_SECONDS = 60


class Refused(Exception):
    """What the client said that went wrong."""


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


def spelled(records: Iterable[Record]) -> str:
    return ";".join(
        ",".join(
            [
                hexed(each.key),
                hexed(each.value),
                *(word for name, value in each.headers for word in (name.encode().hex(), value.hex())),
            ]
        )
        for each in records
    )


def hexed(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def unhexed(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


class Program:
    def __init__(self, command: list[str], bootstrap: str, settings: Mapping[str, str], log: Path) -> None:
        words = [*command, bootstrap, *(f"{name}={value}" for name, value in settings.items())]
        self._log = log
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._answers: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.joined = False
        self.version = str(self.ask("version")["version"])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    @property
    def usable(self) -> bool:
        return self._process.poll() is None and not self.joined

    def tell(self, verb: str, **given: object) -> None:
        assert self._process.stdin is not None
        words = (f"{name}={value}" for name, value in given.items())
        print(verb.replace("_", "-"), *words, file=self._process.stdin, flush=True)
        self.joined = verb == "join" or (self.joined and verb != "leave")

    def hear(self) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            self.close()
            raise Refused(f"no answer within {ANSWER_SECONDS} seconds{self._said()}") from None
        if not line:
            raise Refused(f"it ended with {self._process.wait()}{self._said()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            self.close()  # who knows what state it is in
            raise Refused(answer["error"])
        return answer

    def ask(self, verb: str, **given: object) -> dict[str, Any]:
        self.tell(verb, **given)
        return self.hear()

    def _said(self) -> str:
        return f"; it said:\n{self._log.read_text(errors='replace')[-2000:]}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):  # what it had not read yet
                stream.close()

    # -- what tests ask for in more than one place ------------------------------------------------

    def write(self, topic: str, records: Iterable[Record], **options: object) -> list[int]:
        offsets: list[int] = self.ask("produce", topic=topic, records=spelled(records), **options)["offsets"]
        return offsets

    def read(self, topic: str, count: int, **options: object) -> list[Record]:
        found = self.ask("consume", topic=topic, count=count, **options)["records"]
        return [
            Record(
                unhexed(each["key"]),
                unhexed(each["value"]),
                tuple((name, unhexed(value) or b"") for name, value in each["headers"]),
            )
            for each in found
        ]
