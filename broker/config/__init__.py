"""Every setting of a broker, a topic, a group: name, type, default, validity, update mode, synonyms.

Pure: no clock, no files.  Start at `broker.py`; the settings themselves stand in `tables/`.
"""

from trilogue.broker.config.broker import DEVELOPMENT, BrokerConfig
from trilogue.broker.config.topic import TopicConfig
from trilogue.broker.config.validate import (
    validate_broker_config,
    validate_client_metrics_config,
    validate_group_config,
    validate_topic_config,
)
from trilogue.broker.config.values import ConfigError

__all__ = [
    "DEVELOPMENT",
    "BrokerConfig",
    "ConfigError",
    "TopicConfig",
    "validate_broker_config",
    "validate_client_metrics_config",
    "validate_group_config",
    "validate_topic_config",
]
