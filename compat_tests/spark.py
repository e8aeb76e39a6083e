"""Spark with its stock Kafka connector: the versions, and how a session is started.

`VERSION` is the one setting: PySpark itself is pinned in constraints.txt, and has to be of the same version.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jars
import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

VERSION = "4.0.0"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"
CLIENT = f"Spark {VERSION}"
"""Its name in docs/compatibility.md."""

# Spark's own list of places begins with ~/.m2, where Maven leaves descriptions of artifacts that it never fetched; Ivy
# believes those and then misses the jar.  So: only Maven Central, which is what `ibiblio` means by itself.
PLACES = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


@contextmanager
def resolving() -> Iterator[Path]:
    """Ivy's folder, for one process at a time: Ivy itself does not keep two of them apart."""
    place = jars.folder() / "ivy"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def start(name: str, folder: Path) -> SparkSession:
    """A small local session whose files all lie in `folder`.  Raises `jars.Missing` where there is no Java."""
    if shutil.which("java") is None:
        raise jars.Missing("`java` is not installed (Spark needs Java 17)")
    assert pyspark.__version__ == VERSION, f"PySpark is {pyspark.__version__}, the connector {VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with resolving() as ivy:
        places = ivy / "settings.xml"
        places.write_text(PLACES)
        settings = {
            "spark.jars.packages": CONNECTOR,
            "spark.jars.ivy": str(ivy),
            "spark.jars.ivySettings": str(places),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.driver.memory": "1g",
        }
        builder = SparkSession.builder.appName(name).master("local[2]")
        for key, value in settings.items():
            builder = builder.config(key, value)
        try:
            session = builder.getOrCreate()
        except PySparkRuntimeError as error:  # its JVM ended; why is in what it printed
            raise RuntimeError(f"Spark does not start with {CONNECTOR}; its log says why: {error}") from error
    session.sparkContext.setLogLevel("ERROR")
    return session
