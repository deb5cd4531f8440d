"""What the server uses of other libraries beyond what they publish, as ``model/seams`` does for the model."""
