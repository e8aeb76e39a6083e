"""Kafka's error codes, and the two exceptions that the layers above `wire` meet.

`BrokerError` is for what the protocol has a code for.  `MalformedMessage` is for bytes that have none coming:
whoever sent them does not speak the protocol, and is hung up on.
"""

from enum import IntEnum
from typing import Self

RETRY, FINAL = True, False


class ErrorCode(IntEnum):
    """Every code of kafka-clients 4.4.0: number, whether the same request may succeed later, what it says."""

    retriable: bool
    sentence: str

    def __new__(cls, code: int, retriable: bool, sentence: str) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.sentence = sentence
        return member

    UNKNOWN_SERVER_ERROR = -1, FINAL, "Something went wrong in the broker that has no code of its own."
    NONE = 0, FINAL, "All went well."
    OFFSET_OUT_OF_RANGE = 1, FINAL, "The log has no such offset: it is before the start or past the end."
    CORRUPT_MESSAGE = 2, RETRY, "The records are damaged, oversized, or lack the key their topic needs."
    UNKNOWN_TOPIC_OR_PARTITION = 3, RETRY, "There is no such topic or partition on this broker."
    INVALID_FETCH_SIZE = 4, FINAL, "A fetch of that many bytes makes no sense."
    LEADER_NOT_AVAILABLE = 5, RETRY, "The partition has no leader at the moment; one is being elected."
    NOT_LEADER_OR_FOLLOWER = 6, RETRY, "This broker does not hold the role that the request needs."
    REQUEST_TIMED_OUT = 7, RETRY, "The time given for the request ran out before it was done."
    BROKER_NOT_AVAILABLE = 8, FINAL, "The broker that is needed cannot be reached."
    REPLICA_NOT_AVAILABLE = 9, RETRY, "The replica that is needed cannot be read at the moment."
    MESSAGE_TOO_LARGE = 10, FINAL, "A batch is larger than the topic allows."
    STALE_CONTROLLER_EPOCH = 11, FINAL, "A newer controller has taken over from the sender."
    OFFSET_METADATA_TOO_LARGE = 12, FINAL, "The note that came with a committed offset is too long."
    NETWORK_EXCEPTION = 13, RETRY, "The connection broke before the answer came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, RETRY, "The coordinator is still reading its log."
    COORDINATOR_NOT_AVAILABLE = 15, RETRY, "Nobody coordinates this group or transaction right now."
    NOT_COORDINATOR = 16, RETRY, "Another broker coordinates this group or transaction."
    INVALID_TOPIC_EXCEPTION = 17, FINAL, "The topic's name is not allowed, or the topic does not permit this."
    RECORD_LIST_TOO_LARGE = 18, FINAL, "The records would not fit into one log segment."
    NOT_ENOUGH_REPLICAS = 19, RETRY, "Nothing was written: too few replicas are in sync."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, RETRY, "It was written, but to too few replicas in sync."
    INVALID_REQUIRED_ACKS = 21, FINAL, "Acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, FINAL, "The group has moved on to another generation."
    INCONSISTENT_GROUP_PROTOCOL = 23, FINAL, "The member shares no protocol with the rest of its group."
    INVALID_GROUP_ID = 24, FINAL, "That cannot be the id of a group."
    UNKNOWN_MEMBER_ID = 25, FINAL, "The group has no member of that id."
    INVALID_SESSION_TIMEOUT = 26, FINAL, "The session timeout lies outside what this broker permits."
    REBALANCE_IN_PROGRESS = 27, FINAL, "The group is being rebalanced; join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, FINAL, "The commit is too large to be stored."
    TOPIC_AUTHORIZATION_FAILED = 29, FINAL, "You may not do this with the topic."
    GROUP_AUTHORIZATION_FAILED = 30, FINAL, "You may not do this with the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, FINAL, "You may not do this with the cluster."
    INVALID_TIMESTAMP = 32, FINAL, "A record's timestamp is too far from the broker's clock."
    UNSUPPORTED_SASL_MECHANISM = 33, FINAL, "This listener does not offer that SASL mechanism."
    ILLEGAL_SASL_STATE = 34, FINAL, "This request does not belong at this point of the SASL exchange."
    UNSUPPORTED_VERSION = 35, FINAL, "This broker does not speak that version of the request."
    TOPIC_ALREADY_EXISTS = 36, FINAL, "There is a topic of that name already."
    INVALID_PARTITIONS = 37, FINAL, "A topic cannot have that number of partitions."
    INVALID_REPLICATION_FACTOR = 38, FINAL, "That many replicas cannot be placed on the brokers there are."
    INVALID_REPLICA_ASSIGNMENT = 39, FINAL, "Partitions cannot be placed on brokers in the way asked for."
    INVALID_CONFIG = 40, FINAL, "A setting has no such name, or no such value."
    NOT_CONTROLLER = 41, RETRY, "Another node is the controller."
    INVALID_REQUEST = 42, FINAL, "The request contradicts itself or leaves out what it needs."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, FINAL, "The log's record format is too old for this."
    POLICY_VIOLATION = 44, FINAL, "A policy of this cluster forbids it."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, FINAL, "A batch before this one is missing."
    DUPLICATE_SEQUENCE_NUMBER = 46, FINAL, "This batch has been written before."
    INVALID_PRODUCER_EPOCH = 47, FINAL, "The producer's epoch is no longer the current one."
    INVALID_TXN_STATE = 48, FINAL, "The transaction is not in a state that permits this."
    INVALID_PRODUCER_ID_MAPPING = 49, FINAL, "The transactional id belongs to another producer id."
    INVALID_TRANSACTION_TIMEOUT = 50, FINAL, "The transaction timeout is longer than this broker permits."
    CONCURRENT_TRANSACTIONS = 51, RETRY, "The same transaction is still busy with something else."
    TRANSACTION_COORDINATOR_FENCED = 52, FINAL, "A newer coordinator has taken over this transaction."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, FINAL, "You may not use this transactional id."
    SECURITY_DISABLED = 54, FINAL, "No authorizer is configured, so there is nothing to ask."
    OPERATION_NOT_ATTEMPTED = 55, FINAL, "It was not tried, because something else in the request failed."
    KAFKA_STORAGE_ERROR = 56, RETRY, "The disk under the partition has failed."
    LOG_DIR_NOT_FOUND = 57, FINAL, "The broker has no data directory of that name."
    SASL_AUTHENTICATION_FAILED = 58, FINAL, "The credentials were not accepted."
    UNKNOWN_PRODUCER_ID = 59, FINAL, "Nothing that this producer wrote is left to compare with."
    REASSIGNMENT_IN_PROGRESS = 60, FINAL, "The partition is being moved."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, FINAL, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, FINAL, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, FINAL, "Only its owner and its renewers may touch this token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, FINAL, "A connection like this one may not ask for tokens."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, FINAL, "You may not do this with the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, FINAL, "The delegation token has run out."
    INVALID_PRINCIPAL_TYPE = 67, FINAL, "Principals of that type are not known here."
    NON_EMPTY_GROUP = 68, FINAL, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, FINAL, "There is no group of that id."
    FETCH_SESSION_ID_NOT_FOUND = 70, RETRY, "The fetch session is gone; start a new one."
    INVALID_FETCH_SESSION_EPOCH = 71, RETRY, "The fetch session expected another epoch; start a new one."
    LISTENER_NOT_FOUND = 72, RETRY, "The leader has no listener of the kind the client came through."
    TOPIC_DELETION_DISABLED = 73, FINAL, "Topics cannot be deleted on this cluster."
    FENCED_LEADER_EPOCH = 74, RETRY, "The partition has had a newer leader than the sender knows of."
    UNKNOWN_LEADER_EPOCH = 75, RETRY, "The sender knows of a newer leader than this broker does."
    UNSUPPORTED_COMPRESSION_TYPE = 76, FINAL, "A client that old cannot read this compression."
    STALE_BROKER_EPOCH = 77, FINAL, "The broker has registered again since this was sent."
    OFFSET_NOT_AVAILABLE = 78, RETRY, "A new leader does not know yet how far its followers are."
    MEMBER_ID_REQUIRED = 79, FINAL, "Join again with the member id in this answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, RETRY, "The preferred leader is not there to take over."
    GROUP_MAX_SIZE_REACHED = 81, FINAL, "The group is full."
    FENCED_INSTANCE_ID = 82, FINAL, "Another member has taken over this group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, RETRY, "No replica that could become leader is alive."
    ELECTION_NOT_NEEDED = 84, RETRY, "The right leader is in place already."
    NO_REASSIGNMENT_IN_PROGRESS = 85, FINAL, "The partition is not being moved."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, FINAL, "The group still reads this topic, so its offsets stay."
    INVALID_RECORD = 87, FINAL, "A record broke a rule of its topic or of the record format."
    UNSTABLE_OFFSET_COMMIT = 88, RETRY, "A transaction that commits offsets for this group is still open."
    THROTTLING_QUOTA_EXCEEDED = 89, RETRY, "A quota is used up; wait and try again."
    PRODUCER_FENCED = 90, FINAL, "A newer producer uses this transactional id."
    RESOURCE_NOT_FOUND = 91, FINAL, "What the request names does not exist."
    DUPLICATE_RESOURCE = 92, FINAL, "The request names the same thing twice."
    UNACCEPTABLE_CREDENTIAL = 93, FINAL, "A credential like that would not be safe enough."
    INCONSISTENT_VOTER_SET = 94, FINAL, "Sender and receiver do not agree on who votes."
    INVALID_UPDATE_VERSION = 95, FINAL, "That is not the next version of the state to be changed."
    FEATURE_UPDATE_FAILED = 96, FINAL, "The cluster's features could not be changed."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, FINAL, "Nobody can tell for whom the request was forwarded."
    SNAPSHOT_NOT_FOUND = 98, FINAL, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, FINAL, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, RETRY, "No topic on this broker has that id."
    DUPLICATE_BROKER_REGISTRATION = 101, FINAL, "A live broker holds this id."
    BROKER_ID_NOT_REGISTERED = 102, FINAL, "No broker has registered under that id."
    INCONSISTENT_TOPIC_ID = 103, RETRY, "The log belongs to a topic of another id, though of the same name."
    INCONSISTENT_CLUSTER_ID = 104, FINAL, "The sender belongs to another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, FINAL, "No transaction is known under that id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, RETRY, "The fetch session mixes topic names and topic ids."
    INELIGIBLE_REPLICA = 107, FINAL, "A replica was named in sync that cannot be."
    NEW_LEADER_ELECTED = 108, FINAL, "The change was made, and it made another replica the leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, FINAL, "The offset is only in tiered storage by now."
    FENCED_MEMBER_EPOCH = 110, FINAL, "The group has given the member up; it has to start over."
    UNRELEASED_INSTANCE_ID = 111, FINAL, "The instance id is in use until its present member leaves."
    UNSUPPORTED_ASSIGNOR = 112, FINAL, "The group has no assignor of that name and version."
    STALE_MEMBER_EPOCH = 113, FINAL, "The member's epoch has changed; a heartbeat tells the new one."
    MISMATCHED_ENDPOINT_TYPE = 114, FINAL, "A request for controllers came to a broker, or the reverse."
    UNSUPPORTED_ENDPOINT_TYPE = 115, FINAL, "Endpoints of that type do not exist yet."
    UNKNOWN_CONTROLLER_ID = 116, FINAL, "No controller has that id."
    UNKNOWN_SUBSCRIPTION_ID = 117, FINAL, "The telemetry subscription has changed; ask for it again."
    TELEMETRY_TOO_LARGE = 118, FINAL, "The metrics pushed are more than this broker takes at once."
    INVALID_REGISTRATION = 119, FINAL, "The controller does not accept this broker's registration."
    TRANSACTION_ABORTABLE = 120, FINAL, "The transaction failed; abort it and begin another."
    INVALID_RECORD_STATE = 121, FINAL, "The record is no longer this consumer's to acknowledge."
    SHARE_SESSION_NOT_FOUND = 122, RETRY, "The share session is gone; start a new one."
    INVALID_SHARE_SESSION_EPOCH = 123, RETRY, "The share session expected another epoch; start a new one."
    FENCED_STATE_EPOCH = 124, FINAL, "The share group's state has been started anew since."
    INVALID_VOTER_KEY = 125, FINAL, "The voter's key names another replica."
    DUPLICATE_VOTER = 126, FINAL, "It is a voter already."
    VOTER_NOT_FOUND = 127, FINAL, "It is not a voter."
    INVALID_REGULAR_EXPRESSION = 128, FINAL, "The pattern of topic names cannot be understood."
    REBOOTSTRAP_REQUIRED = 129, FINAL, "The client has to begin again at its bootstrap servers."
    STREAMS_INVALID_TOPOLOGY = 130, FINAL, "The topology contradicts itself."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, FINAL, "That cannot be the epoch of this topology."
    STREAMS_TOPOLOGY_FENCED = 132, FINAL, "The group runs a newer topology."
    SHARE_SESSION_LIMIT_REACHED = 133, RETRY, "No more share sessions can be open at once."
    GROUP_DELETION_FAILED = 134, FINAL, "The group could not be deleted; its message says why."
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, FINAL, "The description was refused."
    CONTROLLER_ID_NOT_REGISTERED = 136, FINAL, "No controller has registered under that id."


class BrokerError(Exception):
    """A request, or a part of one, that Kafka's protocol has a code for.

    Raised by whoever refuses; becomes bytes at the smallest unit that has an `error_code`.  Anything else
    that is raised while answering is a bug of ours.
    """

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(message or code.name)
        self.code, self.message = code, message or None


class MalformedMessage(Exception):
    """The bytes are not the message they claim to be.

    `path` says where in the message, as in `topics[3].partitions[0].records`.
    """

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem, path)
        self.problem, self.path = problem, path

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem
