"""Ask: questions about a model and a text, declared once (``table.py``), computed in turns, and cached."""
