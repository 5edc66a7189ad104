"""``python -m tlir.cli`` is ``tlir``."""

from tlir.cli import main

main()
