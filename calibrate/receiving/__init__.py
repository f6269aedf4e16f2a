"""Receive spans over OTLP/HTTP: read a request within limits, keep it before it is acknowledged, join its traces."""
