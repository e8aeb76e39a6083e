"""How a broker comes into a cluster that is kept in ZooKeeper: the way there, and which cluster it is.

Everything that can be wrong is said in one line, before a client or another broker has heard of us.
"""

import json
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from trilogue.broker.cluster.ensemble import Ensemble, Tls, parse_connect
from trilogue.broker.cluster.image import CLUSTER_ID, to_json
from trilogue.broker.cluster.store import UNREACHED, Conflict, Create, Refused, Session
from trilogue.broker.config import BrokerConfig
from trilogue.broker.network.listeners import CannotStart

if TYPE_CHECKING:
    from trilogue.broker.cluster.zookeeper import Link

NewLink = Callable[[Ensemble], "Link"]
"""What sessions with ZooKeeper are made of."""

CONNECTION_SECONDS_MAX = 10.0
"""If nobody says how long to wait for the first connection: a person may be waiting."""


def ensemble_of(config: BrokerConfig) -> Ensemble | None:
    """Where ZooKeeper is; None if there is none."""
    if not config["zookeeper.connect"]:
        return None
    try:
        hosts, chroot = parse_connect(config["zookeeper.connect"])
    except ValueError as problem:
        raise CannotStart(f"zookeeper.connect: {problem}") from None
    session_seconds = config["zookeeper.session.timeout.ms"] / 1000
    connection_ms = config["zookeeper.connection.timeout.ms"]
    digest = config["trilogue.zookeeper.digest"]
    if digest is not None and ":" not in digest:
        raise CannotStart("trilogue.zookeeper.digest: write user:password")
    tls = tls_of(config) if config["zookeeper.ssl.client.enable"] else None
    if config["zookeeper.set.acl"] and digest is None and (tls is None or tls.certificate is None):
        raise CannotStart(
            "zookeeper.set.acl needs trilogue.zookeeper.digest, or TLS and zookeeper.ssl.keystore.location"
        )
    return Ensemble(
        hosts,
        chroot,
        session_timeout_seconds=session_seconds,
        connection_timeout_seconds=connection_ms / 1000
        if connection_ms
        else min(session_seconds, CONNECTION_SECONDS_MAX),
        digest=digest,
        tls=tls,
        set_acl=config["zookeeper.set.acl"],
    )


def tls_of(config: BrokerConfig) -> Tls:
    for name in ("zookeeper.ssl.keystore.type", "zookeeper.ssl.truststore.type"):
        if config[name] is not None and config[name].upper() != "PEM":
            raise CannotStart(f"{name}: only PEM files can be read, not {config[name]}")
    tls = Tls(
        ca=config["zookeeper.ssl.truststore.location"],
        certificate=config["zookeeper.ssl.keystore.location"],
        password=config["zookeeper.ssl.keystore.password"],
        check_hostname=bool(config["zookeeper.ssl.endpoint.identification.algorithm"]),
    )
    try_out(tls)
    return tls


def try_out(tls: Tls) -> None:
    """Files that cannot be used are found here: later they would look like a server that does not answer."""
    context = ssl.create_default_context()
    name, path = "zookeeper.ssl.truststore.location", tls.ca
    try:
        if tls.ca is not None:
            context.load_verify_locations(tls.ca)
        name, path = "zookeeper.ssl.keystore.location", tls.certificate
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, password=tls.password or "")  # without one, OpenSSL asks for it
    except OSError as error:
        raise CannotStart(f"{name}: {path} cannot be used: {error.strerror or error}") from None


async def join(
    ensemble: Ensemble,
    known: str | None,
    new: str,
    ending: AsyncExitStack,
    new_link: NewLink | None = None,
) -> tuple[Session, str]:
    """A session with ZooKeeper, and the id of the cluster there.  `known` is the cluster that our data is of, `new`
    the id of one that begins now; links are kazoo's unless there are others."""
    try:
        from trilogue.broker.cluster.remote import connect
    except ImportError:
        raise CannotStart("ZooKeeper needs kazoo, which is not installed: pip install 'trilogue[zookeeper]'") from None
    try:
        more = {} if new_link is None else {"new_link": new_link}
        session = await ending.enter_async_context(connect(ensemble, may_begin=known is None, **more))
        return session, await cluster_of(session, ensemble, known, new)
    except (Refused, *UNREACHED) as problem:
        raise CannotStart(str(problem)) from None


async def cluster_of(session: Session, ensemble: Ensemble, known: str | None, new: str) -> str:
    node = await session.read(CLUSTER_ID)
    if node is None:
        if known is not None:
            problem = f"our data is of cluster {known}, and {ensemble} has none: is zookeeper.connect right?"
            raise CannotStart(problem)
        try:
            await session.commit([Create(CLUSTER_ID, to_json(version=1, id=new))])
            return new
        except Conflict:  # another broker was quicker
            node = await session.read(CLUSTER_ID)
    try:
        found = json.loads(node.data)["id"] if node is not None else None
        if isinstance(found, str):
            return found
    except (ValueError, KeyError, TypeError):
        pass
    raise CannotStart(f"{ensemble}: what is in {CLUSTER_ID} is not the id of a cluster")
