"""The store on disk: commit log, consume queues, index, checkpoint, recovery, verification."""
