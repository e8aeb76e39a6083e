"""python -m compat_tests.differential.record: ask Apache Kafka everything, and write down what it answers."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # for jars

from compat_tests.differential import recording, runner, targets


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, targets.apache_kafka(Path(folder)) as address:
        offered = runner.offered(address)
        answers = runner.run_against(address, runner.shared(offered, offered))
    recording.save(offered, answers)
    pairs = sum(len(versions) for versions in answers.values())
    count = sum(len(cases) for versions in answers.values() for cases in versions.values())
    print(f"{count} answers to {pairs} pairs of API and version, in {recording.FILE}")


if __name__ == "__main__":
    main()
