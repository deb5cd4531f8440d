"""Rung 3: a bigram model that is trained while the visitor watches, and one that was."""
