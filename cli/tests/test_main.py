"""The command as a whole: what it says about itself, to people and to brokers."""

import platform
import subprocess
import sys

import pytest
import trio

from trilogue import __version__
from trilogue.cli.main import main
from trilogue.client.errors import ConnectionLost
from trilogue.client.link import connect
from trilogue.client.tasks import Tasks
from trilogue.client.world import Address
from trilogue.wire.apis.api_versions import ApiVersionsRequest
from trilogue.wire.frame import Frames, read_header, read_request


def test_its_version_is_one_line_that_a_bug_report_can_begin_with(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    python = f"{platform.python_implementation()} {platform.python_version()}"
    said = f"trilogue {__version__} ({python}, trio {trio.__version__}, {platform.platform()})\n"
    assert (ended.value.code, capsys.readouterr().out) == (0, said)


def test_it_is_a_module_too():
    done = subprocess.run([sys.executable, "-m", "trilogue", "nonsense"], capture_output=True, text=True)

    assert done.returncode == 2
    assert done.stderr.startswith("usage: trilogue ")


def test_a_broker_hears_who_asks():
    heard = []

    async def listen(stream):
        frames = Frames(limit=1000)
        async for data in stream:
            for frame in map(memoryview, frames.feed(data)):
                heard.append(read_request(frame, read_header(frame), ApiVersionsRequest))
                await stream.aclose()
                return

    async def ask():
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, listen, [listener])
            with pytest.raises(ConnectionLost):
                await connect(Tasks(), Address("127.0.0.1", listener.socket.getsockname()[1]))
            nursery.cancel_scope.cancel()

    trio.run(ask)

    assert heard == [ApiVersionsRequest(client_software_name="trilogue", client_software_version=__version__)]
