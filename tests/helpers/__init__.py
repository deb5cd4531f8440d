"""What several tests share: small models, a server, ways to drive the page, and the oracles' own numbers."""
