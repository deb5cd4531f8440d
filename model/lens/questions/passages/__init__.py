"""Where heads fire in a long text, what those passages share, and a map of heads that behave alike."""
