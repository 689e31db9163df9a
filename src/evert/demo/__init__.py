"""A shop that lives for a minute: its definitions, its life, and the story that `evert demo` tells of it."""
