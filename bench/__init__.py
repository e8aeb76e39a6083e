"""Side-by-side benchmarks.  They print; they assert nothing."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))  # jars, Apache Kafka and ZooKeeper
