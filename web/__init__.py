"""The page and the routes."""
