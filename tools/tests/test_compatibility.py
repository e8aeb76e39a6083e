"""The compatibility table: from results to a page, and the list of known failures that may only shrink."""

import json
from pathlib import Path

import pytest

from compat_tests import report
from compat_tests.matrix import CLIENTS, FEATURES
from compat_tests.results import EXPECTED_FAILURES, Expected, expected_failures

ROOT = Path(__file__).resolve().parents[2]


def heads():
    return [
        {"target": "apache-kafka", "version": "4.3.1", "finished": "2026-01-01", "python": "3.11.7", "part": ""},
        {"target": "trilogue", "version": "0.1", "finished": "2026-01-02", "python": "3.11.7", "part": ""},
    ]


def result(target, client=None, feature=None, outcome="passed", **more):
    test = {"test": "t", "module": "compat_tests/test_x.py", "about": "About x."}
    return {"target": target, "client": client, "feature": feature, "outcome": outcome, **test, **more}


def both(client, feature, kafka, ours):
    return [result("apache-kafka", client, feature, kafka), result("trilogue", client, feature, ours)]


@pytest.mark.parametrize(
    ("kafka", "ours", "mark"),
    [
        ("passed", "passed", "yes"),
        ("skipped", "passed", "ours"),
        ("passed", "failed", "**Kafka only**"),
        ("passed", "skipped", "**Kafka only**"),
        ("passed", "known gap", "**Kafka only**"),
        ("failed", "passed", "**ours only**"),
        ("failed", "failed", "**no**"),
    ],
)
def test_a_cell_says_where_it_works(kafka, ours, mark):
    assert report.mark({"apache-kafka": kafka, "trilogue": ours}) == mark


def test_a_cell_of_several_tests_is_as_good_as_the_worst():
    lines = [*heads(), *both("Spark", "batch", "passed", "failed"), *both("Spark", "batch", "passed", "passed")]

    assert report.Results(lines).cells["Spark"]["batch"] == {"apache-kafka": "passed", "trilogue": "failed"}


def test_the_page_has_the_matrix_other_clients_and_counts():
    client = CLIENTS[0]
    lines = [
        *heads(),
        result("trilogue", client.name, FEATURES[0], version="3.0.12"),
        result("apache-kafka", client.name, FEATURES[0], version="3.0.12"),
        *both("Spark", "batch read", "passed", "passed"),
        *both(None, None, "skipped", "passed"),
    ]

    page = report.page(report.Results(lines)).splitlines()

    assert f"| | {client.name} |" in page
    assert f"| {FEATURES[0]} | yes |" in page
    assert f"| {next(iter(client.lacks))} | n/a |" in page
    assert "| *version* | 3.0.12 |" in page
    assert page[page.index("## Spark") + 2] == "- batch read: yes"
    assert "| About x. (`test_x.py`) | 1 skipped | 1 passed |" in page


def test_a_part_of_the_suite_does_not_replace_the_page(tmp_path, monkeypatch, capsys):
    for name in ("FOLDER", "PAGE", "README"):
        monkeypatch.setattr(report, name, tmp_path / name)
    report.FOLDER.mkdir()
    report.README.write_text(f"{report.BEGIN}{report.END}")
    kafka, ours = heads()

    def run(**ours_too):
        for head in (kafka, {**ours, **ours_too}):
            lines = [head, result(head["target"], "Spark", "batch read")]
            (report.FOLDER / f"{head['target']}.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return report.main()

    assert run() == 0
    page = report.PAGE.read_text()
    assert run(part="compat_tests/test_x.py") == 1
    assert "(compat_tests/test_x.py)" in capsys.readouterr().err
    assert report.PAGE.read_text() == page


def test_the_readme_keeps_what_is_around_the_marks():
    text = f"a\n{report.BEGIN}\nold\n{report.END}\nb\n"

    assert report.between(text, "new") == f"a\n{report.BEGIN}\nnew\n{report.END}\nb\n"
    with pytest.raises(ValueError, match="lost its marks"):
        report.between("a\nb\n", "new")
    assert report.between((ROOT / "README.md").read_text(), "new")


def test_known_failures_are_read_with_their_reasons():
    text = "# a comment\n\ntrilogue compat_tests/test_x.py::test_y[a b-c] # Not yet.\n"

    assert expected_failures(text) == [Expected("trilogue", "compat_tests/test_x.py::test_y[a b-c]", "Not yet.")]
    with pytest.raises(ValueError, match="not `target test-id # reason`"):
        expected_failures("trilogue compat_tests/test_x.py::test_y\n")


def test_what_is_known_to_fail_on_ours_is_a_known_gap():
    gaps = " ".join((ROOT / "KNOWN_GAPS.md").read_text().split())
    unexplained = [
        each
        for each in expected_failures(EXPECTED_FAILURES.read_text())
        if each.target == "trilogue" and each.reason not in gaps
    ]

    assert unexplained == []


def test_what_a_client_lacks_is_a_column_of_the_table():
    assert {feature for client in CLIENTS for feature in client.lacks} <= set(FEATURES)
