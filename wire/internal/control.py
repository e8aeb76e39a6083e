"""Control records, and what a .txnindex file keeps of an aborted transaction."""

from trilogue.wire.schema import Data, Int16, Int32, Int64


class ControlRecordTypeSchema(Data, versions="0"):
    type: Int16


class EndTxnMarker(Data, versions="0"):
    coordinator_epoch: Int32


class AbortedTxn(Data, versions="0"):
    producer_id: Int64
    first_offset: Int64
    last_offset: Int64
    last_stable_offset: Int64
