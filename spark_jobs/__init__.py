"""Spark jobs over a store or a cluster: rebalance, redelivery, dead-letter replay, backfill."""
