"""Ask for programs and for the page: one route under ``/v1/lens/`` for each question."""
