"""How heads feed later heads: judged by their weights, and by cutting the paths between them."""
