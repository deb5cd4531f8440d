"""What every request passes before a route: connections, the client's address, and the bytes in flight."""
