"""Every snippet of docs/testing.md, as a project of somebody else's would run it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trilogue.testing.control import obey
from trilogue.testing.faults.faults import Faults

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs/testing.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)
LANGUAGES = {"python", "ini", "sh", "text"}
SECONDS = 200


def blocks(language):
    """Each with the heading that it stands under."""
    text = PAGE.read_text()
    return [
        pytest.param(found[2], id=HEADING.findall(text, 0, found.start())[-1])
        for found in BLOCK.finditer(text)
        if found[1] == language
    ]


@pytest.mark.slow  # two clients with a broker each, twenty times
def test_every_snippet_passes(pytester):
    snippets = [given.values[0] for given in blocks("python")]
    for number, snippet in enumerate(snippets):
        pytester.makepyfile(**{f"test_{number}": snippet})

    result = pytester.runpytest_subprocess("-q", "-rA", "-p", "no:cacheprovider", timeout=SECONDS)

    outcomes = result.parseoutcomes()
    outcomes.pop("warnings", None)
    passed = outcomes.pop("passed")
    assert outcomes == {}
    for number, snippet in enumerate(snippets):
        names = re.findall(r"^def (test_\w+)", snippet, re.MULTILINE)
        assert names, "a snippet that tests nothing"
        for name in names:
            result.stdout.fnmatch_lines([f"PASSED test_{number}.py::{name}*"])
    assert passed >= len(snippets)


def test_the_ini_file_is_understood(pytester):
    (given,) = blocks("ini")
    pytester.makefile(".ini", pytest=given.values[0])
    pytester.makepyfile("""
    def test_it(trilogue_session):
        assert trilogue_session.server.broker.config["num.partitions"] == 3
    """)

    # In a process of its own: what it imports would be forgotten here, and half of it registered.
    pytester.runpytest_subprocess(timeout=SECONDS).assert_outcomes(passed=1)


def test_the_commands_are_understood(tmp_path):
    (given,) = blocks("sh")
    start, *faults = given.values[0].splitlines()
    command = [*start.removesuffix(" &").split(), "0"]  # a port that nobody else has
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    try:
        env["TRILOGUE_FAULTS"] = process.stdout.readline().rpartition(":")[2].strip()
        heard = [subprocess.check_output(each, shell=True, env=env, text=True) for each in faults]
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)
    assert [len(each.splitlines()) for each in heard] == [1, 1, 2, 1, 0]


def test_the_lines_of_json_are_what_is_said_and_answered():
    (given,) = blocks("text")
    asked, answered = given.values[0].splitlines()
    told = obey(Faults(), asked.encode())
    assert json.loads(answered) == {"faults": [each._asdict() for each in told]}


def test_snippets_are_in_languages_that_somebody_runs():
    assert {found[1] for found in BLOCK.finditer(PAGE.read_text())} <= LANGUAGES


def test_links_within_the_page_lead_somewhere():
    text = PAGE.read_text()
    anchors = {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in HEADING.findall(text)}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors
