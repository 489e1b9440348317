"""What `morello explain` says of goals and their schedules: as text, as JSON, as a page. Imports no MLIR."""

from .explained import Explained, Goal, explained
from .page import Page
from .text import shares_text

__all__ = ["Explained", "Goal", "Page", "explained", "shares_text"]
