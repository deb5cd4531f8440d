"""What there is to see inside a model: the attention of a text, and analyses of a model and a text.

An analysis is a module with a function of a :class:`TextPass` (one text, read once; see ``text_pass.py``) or of the
``GPT`` alone, in float32 (see ``float32.py``). It takes its parameters as keyword arguments, and ``progress: Progress =
ignore``, which it calls with the fraction done several times a second if it takes long: there it makes room for others,
and ends if its answer is no longer wanted. Its docstring gives the shapes, the units and the source of its numbers.

An analysis knows a model by the methods of ``MultiHeadAttention``, ``Block`` and ``GPT``, not by their modules. It is
tested against an independent computation: hooks on the same folder in transformers, or brute force.
"""
