"""How many bytes requests in flight may hold."""
