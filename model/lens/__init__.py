"""Interpretability: analyses of a model and a text.

An analysis is a module with a function of a ``TextPass`` (one text, read once; see ``text_pass.py``), of a ``Lens`` (a
model that reads texts; see ``lens.py``), or of the ``GPT`` alone, in float32 (see ``float32.py``). If it is a question
of Ask, its annotations declare it (see ``question.py`` and ``answer.py``). It may take ``progress: Progress = ignore``,
which it calls several times a second with the fraction done if it takes long: this call lets other work run, and
cancels the analysis if its result is no longer needed. Its docstring gives the shapes, the units and the source of its
numbers.

An analysis uses the methods of ``MultiHeadAttention``, ``Block`` and ``GPT``, not their submodules. It is tested
against an independent computation: hooks on the same checkpoint in transformers, or brute force.
"""
