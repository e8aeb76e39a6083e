"""Dead letters go back once, whatever happens in between.  No Spark: they are made by hand, as Spark would."""

from pathlib import Path

import pytest

from trilogue.client.blocking import run as blocking
from trilogue.client.transaction import Transactions
from trilogue.client.writer import Draft, Writer
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.reading import parse
from trilogue.pipeline.redrive import Outcome, Redrive
from trilogue.pipeline.tests.test_examples import read_all

TIME = 1_700_000_000_000


def pipeline(name: str, bad=True):
    said = {
        "pipeline": {"name": name, "checkpoint": "c"},
        "source": {"topics": [name]},
        "sinks": [{"type": "console"}],
    }
    if bad:
        said["bad_records"] = {"action": "dead-letter", "topic": f"{name}.dead"}
    return parse(said, Path(f"{name}.toml"))


def letter(name: str, offset: int, value: bytes | None = b"v") -> Draft:
    said = {"error": "decode: no", "pipeline": name, "source.topic": name, "source.partition": 0}
    said |= {"source.offset": offset, "source.timestamp": TIME + offset}
    ours = [(f"trilogue.{key}", str(text).encode()) for key, text in said.items()]
    return Draft(f"k{offset}".encode(), value, [("theirs", b"kept"), *ours], TIME)


def bury(topics, name: str, *letters: Draft) -> None:
    with topics.client() as client:
        blocking(Writer(client, f"{name}.dead", 1).write(letters))


@pytest.fixture
def name(ours, request):
    """Topics of the test's own, named after it."""
    found = request.node.name.removeprefix("test_").partition("[")[0]
    ours.create(found, 3)
    ours.create(f"{found}.dead")
    return found


def redrive(topics, name, **options) -> Outcome:
    dry = options.pop("dry", False)
    with topics.client() as client:
        return blocking(Redrive(client, pipeline(name), **options).run(dry=dry))


def back(topics, name) -> list[tuple[str, int]]:
    return sorted((bytes(each.record.key).decode(), each.record.timestamp) for each in read_all(topics, name))


def test_back_as_they_were(ours, name):
    bury(ours, name, letter(name, 7), letter(name, 8, None))

    assert redrive(ours, name) == Outcome({name: 2})

    records = sorted((each.record for each in read_all(ours, name)), key=lambda each: each.timestamp)
    assert [each.timestamp for each in records] == [TIME + 7, TIME + 8]
    assert [None if each.value is None else bytes(each.value) for each in records] == [b"v", None]
    said = [[(key, bytes(value)) for key, value in each.headers] for each in records]
    assert said == [[("theirs", b"kept"), ("trilogue.redriven", f"{name}.dead-0@{i}".encode())] for i in (0, 1)]


def test_never_a_second_time(ours, name):
    bury(ours, name, letter(name, 1), letter(name, 2), letter(name, 1))
    assert redrive(ours, name) == Outcome({name: 2}, repeated=1)
    assert redrive(ours, name) == Outcome({})
    bury(ours, name, letter(name, 2), letter(name, 3))

    assert redrive(ours, name) == Outcome({name: 1}, repeated=1)
    assert [key for key, _ in back(ours, name)] == ["k1", "k2", "k3"]


def test_a_copy_in_another_partition_is_known(ours, name):
    name = f"{name}.two"
    ours.create(name)
    ours.create(f"{name}.dead", 2)
    bury(ours, name, letter(name, 1)._replace(partition=1))
    assert redrive(ours, name) == Outcome({name: 1})
    bury(ours, name, letter(name, 1)._replace(partition=0), letter(name, 2)._replace(partition=1))

    assert redrive(ours, name) == Outcome({name: 1}, repeated=1)
    assert [key for key, _ in back(ours, name)] == ["k1", "k2"]


def test_others_records_are_passed_over(ours, name):
    bury(ours, name, letter("another", 1), Draft(b"x", b"no letter"), letter(name, 2))

    assert redrive(ours, name) == Outcome({name: 1}, strange=2)


def test_dry_and_in_parts(ours, name):
    bury(ours, name, *(letter(name, i) for i in range(5)))

    assert redrive(ours, name, dry=True) == Outcome({name: 5})
    assert redrive(ours, name, limit=2) == Outcome({name: 2})
    assert redrive(ours, name, dry=True) == Outcome({name: 3})
    assert redrive(ours, name) == Outcome({name: 3})
    assert [key for key, _ in back(ours, name)] == [f"k{i}" for i in range(5)]


def test_to_another_topic(ours, name):
    ours.create(f"{name}.other")
    bury(ours, name, letter(name, 1))

    assert redrive(ours, name, to=f"{name}.other") == Outcome({f"{name}.other": 1})
    assert back(ours, name) == []


@pytest.mark.parametrize("step", ["_commit_offsets", "_end"])
def test_a_redrive_that_dies_before_it_is_done(ours, name, step, monkeypatch):
    name = f"{name}{step}"
    ours.create(name, 3)
    ours.create(f"{name}.dead")
    bury(ours, name, *(letter(name, i) for i in range(4)))

    class Killed(Exception):
        pass

    async def die(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Transactions, step, die)
        with pytest.raises(Killed):
            redrive(ours, name)

    assert redrive(ours, name) == Outcome({name: 4})
    assert [key for key, _ in back(ours, name)] == ["k0", "k1", "k2", "k3"]


def test_what_cannot_be_redriven(ours, name):
    with ours.client() as client:
        with pytest.raises(PipelineError, match="no dead letters' topic"):
            Redrive(client, pipeline(name, bad=False))
        with pytest.raises(PipelineError, match="there is no topic nowhere"):
            blocking(Redrive(client, pipeline(name), to="nowhere").run())


@pytest.mark.slow
@pytest.mark.java
def test_apache_kafka_redrives_too(kafka):
    name = "redriven"
    kafka.create(name, 3)
    kafka.create(f"{name}.dead")
    bury(kafka, name, letter(name, 1), letter(name, 2), letter(name, 1))

    assert redrive(kafka, name) == Outcome({name: 2}, repeated=1)
    assert redrive(kafka, name) == Outcome({})
    bury(kafka, name, letter(name, 3))
    assert redrive(kafka, name) == Outcome({name: 1})
    assert [key for key, _ in back(kafka, name)] == ["k1", "k2", "k3"]
