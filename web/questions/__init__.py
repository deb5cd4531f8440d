"""Questions about a model and a text: computed in the background, a few at a time, in turn, and kept."""
