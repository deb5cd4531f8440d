"""A server on loopback under attack: what the good visitors notice of it, and what it leaves behind."""
