"""The types of what the server sends to the page's modules."""
