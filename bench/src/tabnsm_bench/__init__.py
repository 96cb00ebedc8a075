"""The paper's evaluation: datasets, protocol, baselines, studies, statistics and figures."""
