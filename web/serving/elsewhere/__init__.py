"""Engines elsewhere: any server with OpenAI's interface writes, and the models here read along."""
