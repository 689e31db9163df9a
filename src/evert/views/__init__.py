"""What is the answer? Views, as their readers see them."""

from evert.views.feed import Change
from evert.views.view import Answer, Past, View

__all__ = ["Answer", "Change", "Past", "View"]
