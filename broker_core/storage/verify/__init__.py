"""Checks every invariant of a store on all its bytes; problems are reported, not raised.

I1   A record lies in one file; the rest of a file that it does not fit into is a blank record.
     Files have one size and follow each other without gaps.
I2   The record at byte p says p in its physical offset.
I3   Bytes after the last record are zero.
I4   Queue entry n belongs to the record whose queue offset is n; there are no gaps; bytes after
     the last entry are zero.
I5   An entry's size and tag code are its record's; every record that belongs in a queue is there.
I6   `rocketpy/tail` ends where the log ends, or where another writer took over from us.
I7   Slots, chains and header of an index file are what its entries say.
I8   What an index file does not count is zero, but for what inserts that died have left.
I9   An index entry points at a record that has its key and time; every key of every record is in
     the index, but for the newest ones of a store that is open or was killed.
I10  The checkpoint's times are 0 or those of records; unused bytes are zero.
I11  Metadata can be read, knows every topic that has queues, and no group is beyond its queue.
I12  Records match their check sums.
I13  A staged batch is in the log whole or not at all, and the ledger says which it is.
I14  No queue ends before the record that `rocketpy/queues` notes as its last.

Bytes that no invariant speaks of: the rest of a blank record after its first eight bytes; units of
an extended queue that no entry points at; values of metadata that are valid, but others than were
written; in records without a check sum, fields that neither queue nor index repeats. A store that
lacks its oldest log files looks like one whose oldest messages were deleted by retention.

The log is walked once, and each record looked up in its queue and in the index as it is met; what
was not met in this way is compared with the record that it points at. Memory: some thousand records
and the slots of one index file, however large the store is. Others may write meanwhile: what they
append or delete is left alone; what an Apache broker, running or killed, has yet to put into queues
and index is reported. Only the log is mapped, and no hole of it looked into: see disk.py.
"""

from rocketpy.broker_core.storage.verify.problems import Problem
from rocketpy.broker_core.storage.verify.verification import VerifyProgress, verify

__all__ = ["Problem", "VerifyProgress", "verify"]
