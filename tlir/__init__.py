"""tlir keeps a tensor computation exactly as it was written and runs it anywhere with the same bits."""
