"""Real tables in two halves, by which changes of the default are chosen and confirmed."""
