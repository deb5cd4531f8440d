"""Rung 10: a served model, recomputed step by step."""
