"""Interventions: activations of a text replaced, by zeros, by means, or by those of another text."""
