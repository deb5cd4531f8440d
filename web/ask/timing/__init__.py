"""How long questions take: what each computes, how fast a model computes it, and the turns that they take."""
