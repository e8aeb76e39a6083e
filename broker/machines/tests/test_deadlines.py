"""Deadlines, told with plain numbers as times."""

from trilogue.broker.machines.deadlines import Deadlines


def test_a_deadline_that_is_advanced_only_comes_nearer():
    deadlines = Deadlines()
    deadlines.advance("a", 5)
    deadlines.advance("a", 7)
    assert deadlines.earliest == 5
    deadlines.advance("a", 3)
    assert (deadlines.due(2.9), deadlines.due(3), deadlines.due(9)) == ([], ["a"], []), "each is due once"
    deadlines.advance("a", 12)
    assert deadlines.earliest == 12
