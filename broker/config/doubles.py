"""Numbers with a point, as Java writes them: clients compare texts."""

from math import isfinite


def written_double(value: float) -> str:
    """Plain from 0.001 up to ten million, otherwise like 1.0E7."""
    if not isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # a millisecond to load, for what is seldom asked

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = int(exponent) + len(digits) - 1
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{power}"
