"""The paper's 38 baselines, RealMLP and TabNSM itself, all behind the protocol's `Method`."""
