"""Boosted trees and other members beside the networks, for ``preset="best"``."""

from tabnsm.blend.blend import NETWORKS, Blend
from tabnsm.blend.fitting import BlendFit

__all__ = ["NETWORKS", "Blend", "BlendFit"]
