"""The producer of asyncio: sends, batches, transactions, requests and replies."""
