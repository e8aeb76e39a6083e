"""The house rules that a machine can check: who may know whom, what is pure, how long is too long."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CLIENTS = {"pytest", "kafka", "confluent_kafka", "aiokafka", "pyspark", "py4j"}
CLIENTS |= {"testcontainers", "docker", "jars", "apache", "clients", "debian", "zookeeper"}

# Who may know whom: our own folders first, then other people's packages.  The longest path that fits counts.
MAY_IMPORT = {
    "wire": {"wire", "construct", "msgspec", "crc32c", "cramjam"},
    "storage": {"storage", "wire"},
    "client": {"client", "wire", "trio"},
    "broker": {"broker", "client", "storage", "wire", "trio", "kazoo", "re2"},
    "testing": {"testing", "broker", "client", "storage", "wire", "trio", "pytest"},
    "cli": {"cli", "broker", "client", "pipeline", "storage", "testing", "wire", "trio", "msgspec"},
    "pipeline": {"pipeline", "client", "wire", "msgspec", "pyspark", "py4j"},
    "pipeline/examples": {"pipeline", "client", "wire", "msgspec", "pyspark", "matplotlib"},
    # Clients know nothing of ours; but what is compared byte for byte is read with our own codecs.
    "compat_tests": {"compat_tests", *CLIENTS},
    "compat_tests/keeper.py": {"kazoo"},
    "compat_tests/programs": {"serving", *CLIENTS},
    "compat_tests/differential": {"compat_tests", "wire", *CLIENTS},
    # No stock client leaves a transaction hanging: that batch is made by hand.
    "compat_tests/test_group_tools.py": {"compat_tests", "wire", "client", *CLIENTS},
    # Faults are what brokers for tests have, and no other.
    "compat_tests/test_recipes.py": {"compat_tests", "testing", *CLIENTS},
    # Nor does any ask for what these ask for, of one broker and no other.
    "compat_tests/inquiry.py": {"compat_tests", "wire", "client", *CLIENTS},
    "compat_tests/membership.py": {"compat_tests", "wire", "client", *CLIENTS},
}
# Who may know whom inside of broker/: what stands below, and nothing that stands above or beside.  Again the longest
# path that fits counts.
LAYERS = [
    {"names.py", "clock.py", "features.py", "requests/later.py", "security"},
    {"requests/turns.py"},
    {"cluster"},
    {"config"},
    {"partitions"},
    {"machines"},
    {"groups", "transactions"},
    {"broker.py"},
    {"requests"},
    {"network", "coordinators", "stacks.py", "watchdog.py"},
    {"apis", "adoption.py", "joining.py", "membership.py"},
    {"surroundings.py"},
    {"server.py"},
]
LEVEL = {Path("broker", name): level for level, names in enumerate(LAYERS) for name in names}

# The only file that may know ZooKeeper; and who writes rubbish there, from outside.
ZOOKEEPER = Path("broker/cluster/zookeeper.py")
OUTSIDE = Path("compat_tests/keeper.py")

# The only file of storage that may know threads: others' tasks read and write through it at the same time.
LOCKING = Path("storage/indirect.py")

# Pure code: no tasks, no clock, no chance, no sockets.  A folder speaks for everything below it.
PURE = [
    Path("wire"),
    Path("storage"),
    Path("broker/groups"),
    Path("broker/transactions"),
    Path("broker/cluster/decisions.py"),
    Path("broker/cluster/image.py"),
    Path("broker/cluster/placement.py"),
    Path("broker/cluster/reassignment.py"),
    Path("broker/cluster/users.py"),
    Path("broker/config"),
    Path("broker/security"),
]
IMPURE = {"trio", "time", "datetime", "random", "secrets", "socket", "threading", "asyncio", "kazoo"}

STANDARD = sys.stdlib_module_names | {"annotationlib"}  # the latter from Python 3.14 on

FUNCTION_LINES_MAX = 80
"""A screen and a bit.  What does not fit has a decision in it that wants a name."""

LONGER = {("storage/log.py", "append_as_leader")}
"""The hot path of the broker, written out in one piece: a call costs as much as a checksum there."""

SOURCES = sorted(
    path.relative_to(ROOT)
    for folder in MAY_IMPORT
    if "/" not in folder
    for path in (ROOT / folder).rglob("*.py")
    if "tests" not in path.relative_to(ROOT).parts[1:]
)


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_tidy(path):
    assert complaints(path, (ROOT / path).read_text()) == []


def complaints(path: Path, text: str) -> list[str]:
    tree = ast.parse(text)
    names = set(imports(tree))
    found = []
    strangers = {name for name in names if name not in STANDARD} - may_import(path)
    if path not in (ZOOKEEPER, OUTSIDE):
        strangers |= names & {"kazoo"}
    found += [f"may not import {name}" for name in sorted(strangers)]
    found += upward(path, tree)
    if any(path.is_relative_to(pure) for pure in PURE):
        impure = names & IMPURE - ({"threading"} if path == LOCKING else set())
        found += [f"is pure, and may not import {name}" for name in sorted(impure)]
        found += [f"is pure, and may not await: line {node.lineno}" for node in ast.walk(tree) if is_async(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX and (path.as_posix(), node.name) not in LONGER:
                found.append(f"{node.name} has {lines} lines; {FUNCTION_LINES_MAX} are the most")
    if tree.body and not ast.get_docstring(tree):
        found.append("does not say what it is for")
    return found


def upward(path: Path, tree: ast.AST) -> list[str]:
    """What a file of broker/ imports against the direction; its own folder is its own affair."""
    if path.parts[0] != "broker" or path == Path("broker/__init__.py"):
        return []
    ours = place(path)
    if ours is None:
        return ["has no place in LAYERS"]
    found = []
    for module in sorted(set(modules(tree, "trilogue.broker."))):
        target = Path(*module.split(".")[1:])
        target = target if (ROOT / target).is_dir() else target.with_suffix(".py")
        theirs = place(target)
        if theirs is None:
            found.append(f"imports {target}, which has no place in LAYERS")
        elif theirs != ours and LEVEL[theirs] >= LEVEL[ours]:
            found.append(f"{path} may not import {target}: {theirs} is not below {ours}")
    return found


def place(path: Path) -> Path | None:
    return next((each for each in (path, *path.parents) if each in LEVEL), None)


def modules(tree: ast.AST, prefix: str):
    """The modules with this prefix that are imported, wherever in the file and for whatever reason."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(prefix))
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.startswith(prefix):
                # `from folder import file` and `from file import name` look the same: the file is what there is.
                for alias in node.names:
                    longer = f"{node.module}.{alias.name}"
                    yield longer if (ROOT / Path(*longer.split(".")[1:])).with_suffix(".py").exists() else node.module
            elif f"{node.module}." == prefix:
                yield from (prefix + alias.name for alias in node.names)


def may_import(path: Path) -> set[str]:
    return next(MAY_IMPORT[str(folder)] for folder in (path, *path.parents) if str(folder) in MAY_IMPORT)


def imports(tree: ast.AST):
    """What is imported: of ours the folder, of others the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (top(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module == "trilogue":
                yield from (alias.name for alias in node.names if alias.name != "__version__")
            else:
                yield top(node.module or "")


def top(name: str) -> str:
    parts = name.split(".")
    return parts[1] if parts[0] == "trilogue" and len(parts) > 1 else parts[0]


def is_async(node: ast.AST) -> bool:
    return isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("wire/x.py", "from trilogue.storage.log import Log", "may not import storage"),
        ("wire/x.py", "import requests", "may not import requests"),
        ("storage/x.py", "from trilogue import broker", "may not import broker"),
        ("broker/cluster/x.py", "from kazoo.client import KazooClient", "may not import kazoo"),
        ("compat_tests/x.py", "import trilogue.wire", "may not import wire"),
        ("storage/x.py", "import time", "is pure, and may not import time"),
        ("broker/groups/x.py", "async def f(): ...", "is pure, and may not await: line 2"),
        ("broker/apis/x.py", "def f():\n" + "    g()\n" * 80, "f has 81 lines; 80 are the most"),
        (
            "broker/groups/x.py",
            "from trilogue.broker.apis.fetch import fetch",
            "broker/groups/x.py may not import broker/apis/fetch.py: broker/apis is not below broker/groups",
        ),
        (
            "broker/network/x.py",
            "def f():\n    from trilogue.broker.coordinators import lookup",
            "broker/network/x.py may not import broker/coordinators/lookup.py:"
            " broker/coordinators is not below broker/network",
        ),
        (
            "broker/partitions/x.py",
            "from trilogue.broker import server",
            "broker/partitions/x.py may not import broker/server.py: broker/server.py is not below broker/partitions",
        ),
        (
            "broker/machines/x.py",
            "from trilogue.broker.requests.peer import Peer",
            "broker/machines/x.py may not import broker/requests/peer.py: broker/requests is not below broker/machines",
        ),
        ("broker/x.py", "import os", "has no place in LAYERS"),
    ],
)
def test_what_it_complains_about(path, text, complaint):
    assert complaints(Path(path), f'"""Doc."""\n{text}\n') == [complaint]


def test_it_complains_about_a_file_without_a_word():
    assert complaints(Path("storage/x.py"), "import os\n") == ["does not say what it is for"]


def test_what_lies_below_may_be_known_whatever_lies_in_between():
    text = '"""Doc."""\nfrom trilogue.broker import names\nfrom trilogue.broker.requests.later import then\n'
    assert complaints(Path("broker/machines/x.py"), text) == []
    assert complaints(Path("broker/apis/x.py"), text) == []


def test_every_file_of_the_broker_has_its_place():
    assert [str(path) for path in SOURCES if path.parts[0] == "broker" and place(path) is None] == [
        "broker/__init__.py"
    ]
    assert all((ROOT / each).exists() for each in LEVEL)


WORDS = {"alarm", "asking", "elsewhere", "habits", "leaders", "mixed", "moving", "office", "stored", "transactional"}


def test_no_file_bears_a_private_word_that_was_given_up():
    assert [str(path) for path in SOURCES if path.parts[0] == "broker" and path.stem in WORDS] == []


def test_zookeepers_own_file_may_know_it():
    assert complaints(ZOOKEEPER, '"""Doc."""\nimport kazoo\n') == []
