"""Training and prediction on many machines or GPUs, by Ray or under torchrun."""

from tabnsm.distributed.fit import fit
from tabnsm.distributed.predict import predict
from tabnsm.distributed.process_group import process_group

__all__ = ["fit", "predict", "process_group"]
