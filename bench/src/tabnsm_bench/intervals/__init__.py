"""How well intervals cover, and how wide they are, on real tables beside a peer."""
