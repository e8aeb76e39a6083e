"""Java things from Maven, by coordinates, into a cache folder.

    python3 tools/jars.py                 bring every set
    python3 tools/jars.py kafka-4.3.1     bring one, and print its class path

The only place that knows which artifacts of Apache Kafka and ZooKeeper work together.  Tests and
benchmarks ask `classpath("kafka-4.3.1")`.  The folder is $TRILOGUE_CACHE, or ~/.cache/trilogue.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LOGGING = "org.slf4j:slf4j-simple:1.7.36"

SETS = {
    # The reference broker with its command-line tools.
    "kafka-4.3.1": ["org.apache.kafka:kafka_2.13:4.3.1", "org.apache.kafka:kafka-tools:4.3.1", LOGGING],
    # Clients: the newest, the last of Kafka 3, and an old one.
    "clients-4.4.0": ["org.apache.kafka:kafka-clients:4.4.0", LOGGING],
    "clients-3.9.1": ["org.apache.kafka:kafka-clients:3.9.1", LOGGING],
    "clients-2.8.2": ["org.apache.kafka:kafka-clients:2.8.2", LOGGING],
    "streams-4.3.1": ["org.apache.kafka:kafka-streams:4.3.1", LOGGING],
    # Kafka Connect with its file connectors, and MirrorMaker 2.
    "connect-4.3.1": [
        "org.apache.kafka:connect-runtime:4.3.1",
        "org.apache.kafka:connect-file:4.3.1",
        "org.apache.kafka:connect-json:4.3.1",
        "org.apache.kafka:connect-mirror:4.3.1",
        "org.apache.kafka:connect-mirror-client:4.3.1",
        LOGGING,
    ],
    # Left out of ZooKeeper's own dependencies, yet needed by its server: metrics-core and snappy.
    "zookeeper-3.9.5": [
        "org.apache.zookeeper:zookeeper:3.9.5",
        "io.dropwizard.metrics:metrics-core:4.1.12.1",
        "org.xerial.snappy:snappy-java:1.1.10.5",
        LOGGING,
    ],
}

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>trilogue</groupId><artifactId>{name}</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


class Missing(Exception):
    """Java or Maven is not on this machine; the message says which."""


def folder() -> Path:
    return Path(os.environ.get("TRILOGUE_CACHE") or Path.home() / ".cache" / "trilogue")


def classpath(name: str) -> str:
    """The class path of one set, brought from Maven if it is not here yet."""
    return os.pathsep.join(str(jar) for jar in sorted(bring(name).glob("*.jar")))


def bring(name: str) -> Path:
    """The folder with the jars of one set.  It appears whole or not at all."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise Missing(f"`{tool}` is not installed (Java 17 and Maven are needed)")
    place = folder() / "jars" / name
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        pom, libs = Path(scratch, "pom.xml"), Path(scratch, "libs")
        dependencies = "".join(DEPENDENCY.format(*spec.split(":")) for spec in SETS[name])
        pom.write_text(POM.format(name=name, dependencies=dependencies))
        print(f"jars: bringing {name} from Maven ...", file=sys.stderr)
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={libs}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"Maven could not bring {', '.join(SETS[name])}:\n{done.stdout[-2000:]}")
        try:
            libs.rename(place)
        except OSError:
            if not place.is_dir():  # otherwise another process was quicker: its copy is as good
                raise
    return place


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in SETS]
    if unknown:
        print(f"jars: no set named {', '.join(unknown)}; there are {', '.join(SETS)}", file=sys.stderr)
        return 2
    try:
        for name in names or SETS:
            print(classpath(name) if names else f"{name}: {len(list(bring(name).glob('*.jar')))} jars")
    except Missing as missing:
        print(f"jars: {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
