"""Metrics for Prometheus: of a broker in this process, a name server, a cluster, a store's folder.

A *source* looks once and returns facts (facts.py); tables of families (native.py, exporter.py) say
under which names and labels facts are told. Nothing is kept between two scrapes, so that what was
deleted is gone from the next one. Only collecting.py and serving.py import prometheus_client, and
only when something is served.
"""
