"""A server on loopback under attack: the effects on well-behaved visitors, and on its memory afterwards."""
