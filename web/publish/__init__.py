"""Publishing on the Hugging Face Hub: a checkpoint as a model, or the app as a Space."""
