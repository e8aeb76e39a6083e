"""What docker/ says, as far as no engine is needed: the command a container runs, and what an image is made of."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_entrypoint():
    spec = importlib.util.spec_from_file_location("entrypoint", ROOT / "docker" / "entrypoint.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


entrypoint = load_entrypoint()
START = ["trilogue", "start", "--data=/data"]
TWO_DOORS = [*START, "--listen=:9092", "--listen=:19092"]


@pytest.mark.parametrize(
    ("environment", "arguments", "expected"),
    [
        ({}, [], [*TWO_DOORS, "--advertise=localhost:9092"]),
        (
            {"TRILOGUE_ADVERTISE": "example.org:1"},
            ["--verbose"],
            [*TWO_DOORS, "--advertise=example.org:1", "--verbose"],
        ),
        (
            {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_JMX_PORT": "1", "PATH": "/bin"},
            [],
            [*TWO_DOORS, "--advertise=localhost:9092", "--set=num.partitions=3"],
        ),
        ({"KAFKA_LISTENERS": "PLAINTEXT://:1"}, [], [*START, "--set=listeners=PLAINTEXT://:1"]),
        (
            {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092"},
            [],
            [*TWO_DOORS, "--set=advertised.listeners=PLAINTEXT://kafka:9092"],
        ),
        ({"KAFKA_NUM_PARTITIONS": "3"}, ["topic", "list"], ["trilogue", "topic", "list"]),
    ],
)
def test_what_a_container_runs(environment, arguments, expected):
    assert entrypoint.command(environment, arguments) == expected


def test_names_of_settings_have_dots_underscores_and_hyphens():
    assert entrypoint.setting("KAFKA_A_B__C___D") == "a.b_c-d"


def test_an_address_is_taken_from_a_file_when_its_line_is_whole(tmp_path, monkeypatch):
    place = tmp_path / "address"
    steps = iter(["localhost:1", "localhost:1234\n"])
    monkeypatch.setattr(entrypoint.time, "sleep", lambda _: place.write_text(next(steps)))
    assert entrypoint.told_by(place) == "localhost:1234"


def test_every_folder_of_the_package_gets_into_an_image():
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    packages = {path.name for path in (ROOT / "src" / "trilogue").iterdir() if path.is_symlink()}
    assert packages <= let_through
    assert {"src", "docker", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"} <= let_through
