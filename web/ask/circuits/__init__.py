"""Questions of Ask about circuits: what heads and neurons do to tokens, and how heads work together."""
