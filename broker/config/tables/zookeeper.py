"""ZooKeeper, where several brokers keep what they know of their cluster.  Names and defaults are Kafka 3's.

Kafka 4 has none of these: they are listed for nobody who does not set them.
"""

from trilogue.broker.config.rules import at_least
from trilogue.broker.config.setting import BOOLEAN, INT, PASSWORD, STRING, Setting

# fmt: off
SETTINGS = [
    Setting("zookeeper.connect", STRING, None, internal=True,
            doc="Where ZooKeeper is, as host:port,host:port/path; if unset, the broker keeps everything itself."),
    Setting("zookeeper.session.timeout.ms", INT, 18_000, at_least(1), internal=True,
            doc="How long a broker may be silent before the others go on without it."),
    Setting("zookeeper.connection.timeout.ms", INT, None, at_least(1), internal=True,
            doc="How long the first connection may take; if unset, the session's time, and 10 s at most."),
    Setting("zookeeper.set.acl", BOOLEAN, False, internal=True,
            doc="Whether our nodes can be changed by us alone; needs credentials."),
    Setting("trilogue.zookeeper.digest", PASSWORD, None, internal=True,
            doc="Who we are to ZooKeeper, as user:password (its scheme digest)."),
    Setting("zookeeper.ssl.client.enable", BOOLEAN, False, internal=True, doc="Whether to speak TLS."),
    Setting("zookeeper.ssl.truststore.location", STRING, None, internal=True,
            doc="Whose certificates are believed: a PEM file; if unset, what the system believes."),
    Setting("zookeeper.ssl.truststore.type", STRING, None, internal=True, doc="PEM."),
    Setting("zookeeper.ssl.keystore.location", STRING, None, internal=True,
            doc="Our certificate and its key: one PEM file."),
    Setting("zookeeper.ssl.keystore.password", PASSWORD, None, internal=True, doc="Of the key, if it has one."),
    Setting("zookeeper.ssl.keystore.type", STRING, None, internal=True, doc="PEM."),
    Setting("zookeeper.ssl.endpoint.identification.algorithm", STRING, "HTTPS", internal=True,
            doc="How a certificate is compared with the host's name; not at all if empty."),
    Setting("zookeeper.clientCnxnSocket", STRING, None, internal=True, doc="A class of ZooKeeper's Java client."),
    Setting("zookeeper.max.in.flight.requests", INT, 10, at_least(1), internal=True,
            doc="How many requests Kafka has under way at a time."),
]
