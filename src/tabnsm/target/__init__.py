"""The target: checked, transformed, standardised, and predicted from what networks learn of it."""

from tabnsm.target.asinh import AsinhTransform
from tabnsm.target.checks import check_target
from tabnsm.target.config import TargetConfig
from tabnsm.target.linear_fit import LinearFit
from tabnsm.target.model import TargetModel
from tabnsm.target.residual import LinearResidual, TargetRows, linear_residual
from tabnsm.target.scaler import TargetScaler
from tabnsm.target.several import Targets, read_targets

__all__ = [
    "AsinhTransform",
    "LinearFit",
    "LinearResidual",
    "TargetConfig",
    "TargetModel",
    "TargetRows",
    "TargetScaler",
    "Targets",
    "check_target",
    "linear_residual",
    "read_targets",
]
