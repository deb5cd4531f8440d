"""What a server and a checkpoint are put through."""
