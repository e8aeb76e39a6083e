"""Anything that a construct can carry, as hypothesis strategies and as plain seeded chance."""

import random

import construct as c
from hypothesis import strategies as st

from trilogue.wire.constructs import Blob, Items, Maybe, Message, Text, Uuid

BITS = {"b": 8, "h": 16, "H": 16, "l": 32, "L": 32, "q": 64}


def values(con: c.Construct) -> st.SearchStrategy:
    match con:
        case c.Renamed():
            return values(con.subcon)
        case c.FormatField(fmtstr=code):
            return st.floats(allow_nan=False) if code[1] == "d" else st.integers(*limits(code[1]))
        case c.Flag:
            return st.booleans()
        case _ if con is Uuid:
            return st.binary(min_size=16, max_size=16)
        case Text():
            some = st.text(max_size=8) | st.just("ü" * 200)
        case Blob():
            some = st.binary(max_size=8) | st.just(bytes(200)) | st.just(bytes(5000))
        case Items():
            some = st.lists(values(con.subcon), max_size=3)
        case Maybe():
            return st.none() | values(con.subcon)
        case Message():
            fields = [*con.plain.subcons, *(con.tagged or {}).values()]
            return st.builds(con.cls, **{f.name: values(f) for f in fields})
    return st.none() | some if con.nullable else some


def limits(code: str) -> tuple[int, int]:
    bits = BITS[code]
    return (0, 2**bits - 1) if code.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def some_value(con: c.Construct, chance: random.Random) -> object:
    """One such value.  Much quicker to come by than from hypothesis, for where numbers matter."""
    match con:
        case c.Renamed():
            return some_value(con.subcon, chance)
        case c.FormatField(fmtstr=code):
            if code[1] == "d":
                return chance.uniform(-1e9, 1e9)
            low, high = limits(code[1])
            return chance.choice([0, 1, low, high, chance.randint(low, high)])
        case c.Flag:
            return chance.random() < 0.5
        case _ if con is Uuid:
            return chance.randbytes(16)
        case Maybe():
            return None if chance.random() < 0.3 else some_value(con.subcon, chance)
        case Message():
            fields = list(con.plain.subcons)
            fields += [f for f in (con.tagged or {}).values() if chance.random() < 0.5]
            return con.cls(**{f.name: some_value(f, chance) for f in fields})
    if con.nullable and chance.random() < 0.2:
        return None
    if isinstance(con, Items):
        return [some_value(con.subcon, chance) for _ in range(chance.choice([0, 1, 1, 2]))]
    size = chance.choice([0, 1, 5, 5, 130])
    return "é" * size if isinstance(con, Text) else chance.randbytes(size)
