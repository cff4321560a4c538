"""What programs use: the client of asyncio, and the one that blocks. One engine, two faces."""
