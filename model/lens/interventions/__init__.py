"""Interventions: activations of a text replaced with zeros, means, or those of another text."""
