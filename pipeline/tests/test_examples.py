"""Every example, from its topic to its table, row by row: against our broker, and against Apache Kafka."""

import json
import shutil
from collections import defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from trilogue.client.blocking import run as blocking
from trilogue.client.offsets import EARLIEST, LATEST, offsets
from trilogue.client.reader import Reader
from trilogue.pipeline import examples, reading
from trilogue.pipeline.examples import changes, clicks, orders
from trilogue.pipeline.examples.drawing import rows_of
from trilogue.pipeline.run import run_on

pytestmark = [pytest.mark.slow, pytest.mark.java]

EXAMPLES = Path(examples.__file__).parent
DAY = timedelta(days=1)


@pytest.fixture(params=["ours", "kafka"])
def topics(request):
    return request.getfixturevalue(request.param)


def run_example(name, module, topics, spark, tmp_path):
    """Its table, and where its file is.  Run twice: the second time there is nothing new."""
    toml = tmp_path / name / "pipeline.toml"
    shutil.copytree(EXAMPLES / name, toml.parent)
    topics.fill(module.TOPICS, module.records())
    pipeline = reading.read(toml)
    pipeline = replace(pipeline, source=replace(pipeline.source, bootstrap=topics.bootstrap))
    said = []
    totals = run_on(spark, pipeline, say=said.append)
    assert totals.batches["rows"] >= 3, "several batches, or the example shows little"
    first = rows_of(spark, toml)
    again = run_on(spark, pipeline, say=said.append)
    assert again.rows.get("rows", 0) == 0
    assert sorted(map(str, rows_of(spark, toml))) == sorted(map(str, first))
    return first


def time_of(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def read_all(topics, name: str):
    async def work(client):
        partitions = range(len((await client.topic(name)).partitions))
        begins = await offsets(client, name, partitions, EARLIEST)
        ends = await offsets(client, name, partitions, LATEST)
        reader, found = Reader(client, name, begins), []
        while any(reader.positions[each] < ends[each] for each in partitions):
            found += await reader.poll(0.5)
        return found

    with topics.client() as client:
        return blocking(work(client))


def test_orders_to_daily_revenue(topics, spark, tmp_path):
    table = run_example("orders", orders, topics, spark, tmp_path)

    good, bad = {}, []
    for sent in orders.records():
        try:
            found = json.loads(sent.value, parse_float=Decimal)
        except ValueError:
            bad.append(sent.value)
            continue
        if found["amount"] > 0:
            good[found["order_id"]] = found
        else:
            bad.append(sent.value)
    newest = max(time_of(found["at"]) for found in good.values())
    days = defaultdict(lambda: [0, Decimal(0)])
    for found in good.values():
        day = time_of(found["at"]).date()
        # A day is over when nobody can be late for it any more: two days after its end.
        if datetime.combine(day, datetime.min.time()) + 3 * DAY <= newest:
            days[day, found["country"]][0] += 1
            days[day, found["country"]][1] += found["amount"]
    assert {(row.date, row.country): [row.orders, row.revenue] for row in table} == days
    assert len(table) == len(days) > 80
    assert {row.month for row in table} == {"2026-03"}

    letters = read_all(topics, "orders.dead")
    assert sorted(bytes(each.record.value).decode() for each in letters) == sorted(bad)
    sources = {(each.partition, each.record.offset): each.record for each in read_all(topics, "orders")}
    for letter in letters:
        said = {name: bytes(value).decode() for name, value in letter.record.headers}
        source = sources[int(said["trilogue.source.partition"]), int(said["trilogue.source.offset"])]
        assert bytes(source.value) == bytes(letter.record.value)
        assert bytes(source.key) == bytes(letter.record.key)
        assert said["trilogue.source.timestamp"] == str(source.timestamp)
        assert (said["trilogue.source.topic"], said["trilogue.pipeline"]) == ("orders", "orders")
        broken = not bytes(letter.record.value).endswith(b"}")
        wanted = "decode: not JSON of the schema" if broken else "expect: an order costs something"
        assert said["trilogue.error"].startswith(wanted)


def test_clicks_to_sessions(topics, spark, tmp_path):
    table = run_example("clicks", clicks, topics, spark, tmp_path)

    by_user = defaultdict(list)
    for sent in clicks.records():
        found = json.loads(sent.value)
        by_user[found["user"]].append((time_of(found["at"]), found["page"]))
    newest = max(at for seen in by_user.values() for at, _ in seen)
    wanted = []
    for user, seen in by_user.items():
        seen.sort()
        cuts = [0, *(i for i, (one, two) in enumerate(pairwise(seen), 1) if two[0] - one[0] >= timedelta(minutes=30))]
        for begin, end in zip(cuts, [*cuts[1:], len(seen)], strict=True):
            session = seen[begin:end]
            began, last = session[0][0], session[-1][0]
            if last + timedelta(minutes=30) <= newest - timedelta(hours=2):
                bought = any(page == "/checkout" for _, page in session)
                length = int((last - began).total_seconds())
                wanted.append((began.date(), user, began, length, len(session), session[0][1], bought))
    columns = ("date", "user", "began", "seconds", "clicks", "first_page", "bought")
    assert sorted(tuple(row[name] for name in columns) for row in table) == sorted(wanted)
    assert len(wanted) > 800
    assert isinstance(table[0].date, date)


def test_changes_to_the_current_state(topics, spark, tmp_path):
    table = run_example("changes", changes, topics, spark, tmp_path)

    state = {}
    for sent in changes.records():
        if sent.value is None:
            state.pop(sent.key, None)
        else:
            found = json.loads(sent.value)
            state[sent.key] = (found["country"], found["plan"], time_of(found["changed"]))
    assert {row.customer: (row.country, row.plan, row.changed) for row in table} == state
    assert len(table) == len(state) > 300
