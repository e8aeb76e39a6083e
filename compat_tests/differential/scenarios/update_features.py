"""UpdateFeatures, without changing anything: unknown features, levels that cannot be, and questions."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.update_features import UpdateFeaturesRequest

Feature = UpdateFeaturesRequest.FeatureUpdate


@scenario(UpdateFeaturesRequest)
def raising(ask: Asking) -> None:
    def update(case: str, *wanted: tuple[str, int], only_ask: bool = False, **more: Any) -> None:
        updates = [Feature(feature=name, max_version_level=level, **more) for name, level in wanted]
        asked = UpdateFeaturesRequest(feature_updates=updates, timeout_ms=5000, validate_only=only_ask)
        ask(case, asked)

    update("an unknown feature", ("no.such.feature", 1))
    update("an unknown feature, only asked", ("no.such.feature", 1), only_ask=True)
    update("an unknown feature, to be removed", ("no.such.feature", 0), upgrade_type=2, allow_downgrade=True)
    update("an unknown feature, to be removed by force", ("no.such.feature", 0), upgrade_type=3, allow_downgrade=True)
    update("an unknown feature, to be removed by an upgrade", ("no.such.feature", 0))
    update("a negative level", ("no.such.feature", -1))
    update("a negative level down", ("no.such.feature", -1), upgrade_type=2, allow_downgrade=True)
    update("an unknown kind of change", ("no.such.feature", 1), upgrade_type=9)
    update("two unknown features", ("no.such.feature", 1), ("nor.this", 1))
    update("the same one twice", ("no.such.feature", 1), ("no.such.feature", 2))
    update("an empty name", ("", 1))
    update("a very high level", ("no.such.feature", 32767))
    for level in (-1, 0, 1, 2, 3):
        update(f"level {level} of transaction.version, up", ("transaction.version", level), only_ask=ask.version > 0)
    for level in (-1, 2, 3):
        change = {"upgrade_type": 2, "allow_downgrade": True}
        update(f"level {level} of transaction.version, down", ("transaction.version", level), **change)
    update("a known and an unknown feature", ("transaction.version", 2), ("no.such.feature", 1))
    update("nothing")
    update("nothing, only asked", only_ask=True)
