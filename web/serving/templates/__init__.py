"""Chat templates, rendered outside of this process."""
