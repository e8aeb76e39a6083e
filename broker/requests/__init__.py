"""What every handler shares: the registry, who is asking, and answers that come now or later."""
