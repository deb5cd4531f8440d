"""Ask: questions about a model and a text (``table.py``), computed in turns, and cached."""
