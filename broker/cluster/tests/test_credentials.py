"""Who may come near our nodes in ZooKeeper: passwords, certificates, and what both are good for."""

import gc
import shutil
import subprocess

import apache
import pytest
import trio
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from zookeeper import ZooKeeper

from trilogue.broker.cluster.ensemble import Ensemble, Tls
from trilogue.broker.cluster.remote import connect
from trilogue.broker.cluster.store import Create, Refused, Unavailable, Update

pytestmark = pytest.mark.java

CONFIG = "/config/topics/t"
SECRET = "/config/brokers/1"


def use(ensemble, *ops):
    """Read everything, and commit something."""

    async def story():
        async with connect(ensemble, may_begin=True) as session:
            await session.tree()
            await session.commit(ops)
            return {path: node.data for path, node in (await session.tree()).items()}

    return trio.run(story)


def test_what_is_ours_can_be_read_by_others_and_changed_by_nobody_else(zookeeper, tmp_path):
    given = Ensemble(zookeeper.address, f"/acl/{tmp_path.name}", digest="me:secret", set_acl=True)
    assert use(given, Create(CONFIG, b"1"), Create(SECRET, b"2")) == {CONFIG: b"1", SECRET: b"2"}
    assert use(given, Update(CONFIG, b"3")) == {CONFIG: b"3", SECRET: b"2"}, "we come again"

    stranger = KazooClient(zookeeper.address)
    stranger.start()
    stranger.chroot = given.chroot
    assert stranger.get(CONFIG)[0] == b"3"
    for forbidden in (
        lambda: stranger.set(CONFIG, b"x"),
        lambda: stranger.delete(CONFIG),
        lambda: stranger.create("/brokers/topics/x", b"", makepath=True),
        lambda: stranger.set("/changes", b""),
        lambda: stranger.get(SECRET),
    ):
        with pytest.raises(NoAuthError):
            forbidden()
    stranger.stop()
    stranger.close()

    wrong = Ensemble(zookeeper.address, given.chroot, digest="me:wrong", set_acl=True)
    with pytest.raises(Refused, match="credentials"):
        use(wrong, Update(CONFIG, b"4"))


# -- TLS -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority, and a file with key and certificate for each of two."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    openssl(*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
    for name in ("server", "broker"):
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1"]
        openssl(*new, *signed, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}")
        (folder / f"{name}.pem").write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    return folder


@pytest.fixture(scope="module")
def secure(certificates, tmp_path_factory):
    port = apache.free_port()
    settings = {
        "secureClientPort": str(port),
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.1": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "ssl.keyStore.location": str(certificates / "server.pem"),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": str(certificates / "ca.pem"),
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "need",
    }
    with ZooKeeper(tmp_path_factory.mktemp("secure"), settings):
        yield f"127.0.0.1:{port}"


def test_tls_with_a_certificate_of_our_own(secure, certificates):
    tls = Tls(ca=str(certificates / "ca.pem"), certificate=str(certificates / "broker.pem"))
    given = Ensemble(secure, "/tls", tls=tls, set_acl=True)
    assert use(given, Create(CONFIG, b"1")) == {CONFIG: b"1"}
    assert use(given, Update(CONFIG, b"2")) == {CONFIG: b"2"}


@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")  # kazoo leaves them behind
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
def test_a_server_with_an_unknown_certificate_is_not_spoken_to(secure, certificates):
    tls = Tls(ca=str(certificates / "broker.crt"), certificate=str(certificates / "broker.pem"))
    with pytest.raises(Unavailable):
        use(Ensemble(secure, "/tls2", tls=tls, connection_timeout_seconds=2), Create(CONFIG, b""))
    gc.collect()
