"""What is the answer? Views, as their readers see them."""

from evert.views.view import Answer, View

__all__ = ["Answer", "View"]
