"""What happened? The durable log of commits, and everyone who reads it."""
