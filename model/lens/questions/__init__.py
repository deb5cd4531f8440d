"""What Ask computes: each module answers one question about a model and a text, as a function.

How to add one:

1. Here, a module with a function of a :class:`TextPass` (one text, read once by a float32 model; see ``text_pass.py``)
   or of the float32 ``GPT`` alone (see ``float32.py``). It takes keyword arguments for its parameters, and ``progress:
   Progress = ignore``, which it calls with the fraction done several times a second if it takes long: that is where it
   makes room for others, and where it ends when nobody waits for it any more. Its docstring says what the numbers are,
   their shapes, their units and the source.
2. ``web/api/lens/``: a row that gives it a route under ``/v1/lens/`` (see ``questions.py`` there).
3. ``web/js/look/ask/``: a module that draws the answer (see ``questions.mjs`` there).

Each function is tested against an independent computation: hooks on the same folder in transformers, or brute force.
"""
