"""The client of RocketMQ clusters for asyncio.

async with rocketpy.aio.connect("ns1:9876;ns2:9876") as mq:
    receipt = await mq.send("orders", b"1 euro", tags="paid", keys="o-1")

The client that blocks has the same names: rocketpy.connect().
"""

from __future__ import annotations

from rocketpy.broker_core.client.faces.aio import AsyncClient, connect

__all__ = ["AsyncClient", "connect"]
