"""Both forms of the door to the operating system keep the same promises.

The second is tried here as it is, on a system that would not need it; `make test-reduced` takes that system away."""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from posix_only import posix_only

from trilogue.storage import log as log_module
from trilogue.storage import system
from trilogue.storage.files import File, Handle, OpenFiles
from trilogue.storage.indirect import FIRST_NUMBER, PAUSES_SECONDS, Indirect
from trilogue.storage.log import SHARED_FILES
from trilogue.storage.slices import Slice
from trilogue.storage.system import System
from trilogue.storage.tests.making import NOW, append, opened, values
from trilogue.wire.records import batches

try:
    import msvcrt
except ImportError:
    from reduced import standin_msvcrt as msvcrt

TOOLS = str(Path(posix_only.__code__.co_filename).parent)
NAMES = [name for name in vars(System) if not name.startswith("_")]


def direct() -> System:
    from trilogue.storage.direct import Direct

    return Direct()


@pytest.fixture(params=[pytest.param(direct, marks=posix_only("its calls are not there")), Indirect])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    """One of the two, under everything that storage does in this test."""
    SHARED_FILES.clear()
    gc.collect()  # what other tests have opened is closed by the form that opened it
    made: System = request.param()
    for name in NAMES:
        monkeypatch.setattr(system, name, getattr(made, name))
    monkeypatch.setattr(log_module, "_pwrite", made.pwrite)
    monkeypatch.setattr(Handle.__del__, "__defaults__", (made.close,))
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    yield made
    SHARED_FILES.clear()
    gc.collect()


@pytest.fixture
def file(tmp_path: Path, form: System) -> Iterator[File]:
    """Awake, with content, in a folder of its own."""
    (tmp_path / "t-0").mkdir()
    made = File(str(tmp_path / "t-0" / "0.log"), OpenFiles())
    system.pwrite(made.create().fd, b"content", 0)
    yield made
    made.pool.clear()


def whole(handle: Handle) -> Slice:
    return Slice(handle, 0, 7, 0)


# ---- what is chosen ------------------------------------------------------------------------------------------


@posix_only("its calls are not there")
def test_a_posix_system_is_asked_without_a_word_in_between():
    for name in ("open", "close", "pread", "preadv", "pwrite", "ftruncate", "fstat", "rename", "unlink"):
        assert getattr(system, name) is getattr(os, name)
    assert log_module._pwrite is os.pwrite


def test_a_system_without_positional_reads_gets_the_other_form(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "pread", raising=False)
    assert isinstance(system.chosen(), Indirect)


def test_every_promise_has_a_name_in_the_module():
    assert [name for name in NAMES if getattr(system, name, None) is None] == []


# ---- a slice stays readable ----------------------------------------------------------------------------------


def test_a_slice_outlives_the_renaming_of_its_file(file: File):
    held = whole(file.open())
    file.rename(file.path + ".deleted")
    assert held.read() == b"content"
    system.pwrite(file.open().fd, b"CONTENT", 0)
    assert held.read() == b"CONTENT"


def test_a_slice_outlives_the_removal_of_its_file(file: File):
    held = whole(file.open())
    file.sleep()
    system.unlink(file.path)
    assert held.read() == b"content"


def test_a_slice_outlives_the_renaming_of_its_folder(file: File, tmp_path: Path):
    held = whole(file.open())
    system.rename(str(tmp_path / "t-0"), str(tmp_path / "t-0.x-delete"))
    assert held.read() == b"content"
    assert (tmp_path / "t-0.x-delete" / "0.log").read_bytes() == b"content"


def test_a_slice_outlives_the_removal_of_its_folder_and_then_nothing_is_left(file: File, tmp_path: Path):
    held = whole(file.open())
    (tmp_path / "t-0" / "below").mkdir()
    (tmp_path / "t-0" / "below" / "more").write_text("")
    system.rmtree(str(tmp_path / "t-0"))
    assert held.read() == b"content"
    file.sleep()
    del held
    assert list(tmp_path.iterdir()) == []


def test_a_slice_reads_the_old_content_when_another_file_takes_the_place(file: File, tmp_path: Path):
    held = whole(file.open())
    (tmp_path / "new").write_bytes(b"another")
    system.rename(str(tmp_path / "new"), file.path)
    assert held.read() == b"content"
    assert Path(file.path).read_bytes() == b"another"
    file.sleep()
    assert whole(file.open()).read() == b"another"


def test_a_slice_reads_into_a_buffer_at_its_place(file: File):
    buffer = bytearray(9)
    assert Slice(file.open(), 3, 9, 0).read_into(memoryview(buffer)) == 4
    assert buffer == b"tent" + bytes(5)


def test_slices_of_a_log_outlive_expiry_sweep_and_deletion(form: System, tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=100, retention_bytes=0, file_delete_delay_ms=5)
    append(log, b"old")
    append(log, b"new")
    old, new = log.read(0, 1000, up_to=2), log.read(1, 1000, up_to=2)
    assert old is not None
    assert new is not None
    assert log.expire(NOW, 2) == 2
    log.sweep(NOW + 5)
    folder = log.delete("0" * 32)
    assert folder is not None
    system.rmtree(folder)
    assert [bytes(record.value or b"") for each in (old, new) for record in records_of(each)] == [b"old", b"new"]
    del old, new, log
    assert list(tmp_path.iterdir()) == []


def records_of(found: Slice):
    return [record for batch in batches(found.read()) for record in batch.records()]


# ---- names ---------------------------------------------------------------------------------------------------


def test_a_name_is_free_as_soon_as_its_file_is_removed(file: File):
    held = whole(file.open())
    system.unlink(file.path)
    another = File(file.path, file.pool)
    system.pwrite(another.create().fd, b"another", 0)
    assert (held.read(), whole(another.open()).read()) == (b"content", b"another")
    with pytest.raises(FileNotFoundError):
        system.unlink(file.path + "x")


def test_a_file_takes_the_place_of_another(file: File, tmp_path: Path):
    (tmp_path / "there").write_bytes(b"before")
    file.rename(str(tmp_path / "there"))
    assert (tmp_path / "there").read_bytes() == b"content"
    assert not (tmp_path / "t-0" / "0.log").exists()


def test_a_file_that_cannot_be_renamed_is_as_it_was(file: File, tmp_path: Path):
    held = whole(file.open())
    with pytest.raises(OSError):  # noqa: PT011
        file.rename(str(tmp_path / "no such folder" / "0.log"))
    assert held.read() == b"content"
    assert file.path == str(tmp_path / "t-0" / "0.log")


def test_what_was_put_aside_at_a_crash_goes_when_the_log_is_opened(tmp_path: Path):
    form = Indirect()
    log = opened(tmp_path / "t-0")
    append(log, b"x")
    log.close(clean=True, now_ms=NOW)
    dead = tmp_path / "t-0" / "00000000000000000007.log"
    dead.write_bytes(b"content")
    fd = form.open(str(dead), os.O_RDONLY)
    form.unlink(str(dead))
    assert len(list((tmp_path / "t-0").glob("*.tmp"))) == 1
    again = opened(tmp_path / "t-0", clean=True)
    assert values(again) == [b"x"]
    assert not list((tmp_path / "t-0").glob("*.tmp"))
    form.close(fd)  # it finds nothing to remove, and that is as well


def test_somebody_elses_short_look_at_a_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As a virus scanner takes it."""
    paused: list[float] = []
    form = Indirect(paused.append)
    (tmp_path / "old").write_bytes(b"content")
    real, refusals = os.replace, iter(range(3))

    def replace(old: str, new: str) -> None:
        if next(refusals, None) is not None:
            raise PermissionError
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    form.rename(str(tmp_path / "old"), str(tmp_path / "new"))
    assert (tmp_path / "new").read_bytes() == b"content"
    assert paused == PAUSES_SECONDS[:3]


def test_who_does_not_let_go_is_not_waited_for_much_longer_than_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    paused: list[float] = []

    def unlink(path: str) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(PermissionError):
        Indirect(paused.append).unlink(str(tmp_path / "x"))
    assert 1 < sum(paused) < 1.1


# ---- threads -------------------------------------------------------------------------------------------------

BLOCK = 1024


def test_threads_that_write_to_one_handle_do_not_mix(file: File):
    handle = file.open()

    def write(number: int) -> None:
        for turn in range(200):
            system.pwrite(handle.fd, bytes([number]) * BLOCK, (turn * 4 + number) * BLOCK)

    in_threads(write, range(4))
    content = system.pread(handle.fd, 4 * 200 * BLOCK, 0)
    assert content == b"".join(bytes([number]) * BLOCK for _ in range(200) for number in range(4))


def test_threads_read_on_while_the_file_is_renamed(file: File, tmp_path: Path):
    handle, seen = file.open(), set()
    stop = threading.Event()

    def read(_: int) -> None:
        while not stop.is_set():
            seen.add(system.pread(handle.fd, 7, 0))

    def rename(_: int) -> None:
        try:
            for turn in range(200):
                file.rename(str(tmp_path / f"{turn}.log"))
        finally:
            stop.set()

    in_threads(lambda number: (read, read, rename)[number](number), range(3))
    assert seen == {b"content"}


def in_threads(action, numbers) -> None:
    threads = [threading.Thread(target=action, args=(number,)) for number in numbers]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def test_a_handle_may_be_let_go_while_the_table_is_taken(tmp_path: Path):
    """As when the garbage collector runs in the middle of a rename."""
    form = Indirect()
    (tmp_path / "x").write_bytes(b"")
    first = form.open(str(tmp_path / "x"), os.O_RDONLY)
    with form._alone():
        form.close(first)
    assert form._open == {}
    assert form._at == {}


def test_numbers_of_ours_are_no_descriptors_of_the_system(tmp_path: Path):
    form = Indirect()
    fd = form.open(str(tmp_path / "x"), os.O_RDWR | os.O_CREAT)
    assert fd >= FIRST_NUMBER
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    form.close(fd)


# ---- the rest ------------------------------------------------------------------------------------------------


def test_files_are_copied_and_cut(file: File, tmp_path: Path):
    system.copy(file.path, str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == b"content"
    system.ftruncate(file.open().fd, 3)
    system.fsync(file.open().fd)
    system.sync_directory(str(tmp_path))
    assert system.fstat(file.open().fd).st_size == 3


def test_a_lock_is_refused_to_a_second_taker_until_it_is_released(form: System, tmp_path: Path):
    path = str(tmp_path / ".lock")
    lock = Handle(system.open(path, os.O_RDWR | os.O_CREAT, 0o644))
    system.lock(lock.fd)
    assert taken_elsewhere(form, path) == "refused\n"
    system.unlock(lock.fd, path)
    del lock
    assert not os.path.exists(path)
    assert taken_elsewhere(form, path) == "taken\n"


def taken_elsewhere(form: System, path: str) -> str:
    """What becomes of another process that wants the lock."""
    script = (
        "import os, sys\n"
        "try: import msvcrt\n"
        "except ImportError:\n"
        "    from reduced import standin_msvcrt\n"
        "    sys.modules['msvcrt'] = standin_msvcrt\n"
        f"from {type(form).__module__} import {type(form).__name__} as Form\n"
        "form = Form()\n"
        "try: form.lock(form.open(sys.argv[1], os.O_RDWR | os.O_CREAT))\n"
        "except OSError: print('refused')\n"
        "else: print('taken')\n"
    )
    path_to = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), TOOLS)))
    done = subprocess.run(
        [sys.executable, "-c", script, path],
        capture_output=True,
        text=True,
        timeout=20,
        env={**os.environ, "PYTHONPATH": path_to},
    )
    assert done.stderr == ""
    return done.stdout
