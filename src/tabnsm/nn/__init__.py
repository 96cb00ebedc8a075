"""Modules that hold parameters and call `tabnsm.functional`; usable in any torch code."""

from tabnsm.nn.config import ArchitectureConfig
from tabnsm.nn.ensemble import Ensemble
from tabnsm.nn.head import MultiStageHead
from tabnsm.nn.interaction import AdaptiveSparseInteraction
from tabnsm.nn.mixer import FeatureTokenMixer
from tabnsm.nn.model import TabNSM
from tabnsm.nn.tokenizer import FeatureTokenizer

__all__ = [
    "AdaptiveSparseInteraction",
    "ArchitectureConfig",
    "Ensemble",
    "FeatureTokenMixer",
    "FeatureTokenizer",
    "MultiStageHead",
    "TabNSM",
]
