"""Stress tests for a server and a checkpoint."""
