"""What is known of a baseline before it runs: who provides it, and whether it can run here."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec

from tabnsm_bench.baselines.environment import find_environment

READY, NEEDS_ENVIRONMENT, UNAVAILABLE = "ready", "needs environment", "unavailable"


@dataclass(frozen=True)
class BaselineInfo:
    """One baseline.

    Parameters
    ----------
    name : str
        As in the paper's table.
    family : str
        The paper's family.
    provider : str
        Package that has the regressor, "tabnsm" for those written here, empty if there is none.
    adapter : str
        "module:factory" below this package; empty where there is nothing to adapt.
    environment : str
        Environment that provides the package where this interpreter does not.
    weights : str
        Environment variable that must name a file of weights.
    why_not : str
        Why there is no adapter, and what a user would need.

    Examples
    --------
    >>> info = BaselineInfo("KNN-5", "Classical", "scikit-learn", "scikit_learn:knn")
    >>> info.key, info.state, info.reason
    ('knn-5', 'ready', '')
    >>> info = BaselineInfo("TabPTM", "Foundation", why_not="No package has it.")
    >>> info.state
    'unavailable'
    """

    name: str
    family: str
    provider: str = ""
    adapter: str = ""
    environment: str = ""
    weights: str = ""
    why_not: str = ""

    @property
    def key(self) -> str:
        """Name in methods, files and commands."""
        return "linear-regression" if self.name == "LinearRegression" else slug(self.name)

    @property
    def user_variable(self) -> str:
        """Environment variable that names the user's own implementation."""
        return "TABNSM_METHOD_" + self.key.upper().replace("-", "_")

    @property
    def user_factory(self) -> str:
        """The user's own implementation, "module:factory"; empty if there is none."""
        return os.environ.get(self.user_variable, "")

    @property
    def state(self) -> str:
        """One of "ready", "needs environment" and "unavailable"."""
        return self._state_and_reason()[0]

    @property
    def reason(self) -> str:
        """Why it is not ready; empty if it is."""
        return self._state_and_reason()[1]

    @property
    def remedy(self) -> str:
        """What a user can do about it; empty if it is ready."""
        return self._state_and_reason()[2]

    def _state_and_reason(self) -> tuple[str, str, str]:
        if self.user_factory:
            return READY, "", ""
        if not self.adapter:
            return UNAVAILABLE, self.why_not, f"Set {self.user_variable}=module:factory."
        if self.weights:
            given = os.environ.get(self.weights, "")
            if not given:
                return UNAVAILABLE, self.why_not, f"Set {self.weights} to their file."
            if not zipfile.is_zipfile(given):  # what torch.save writes
                wrong = f"{self.weights} must name a checkpoint of torch, got {given!r}."
                return UNAVAILABLE, wrong, self.why_not
        if is_installed(self.provider):
            return READY, "", ""
        missing = f"{self.provider} is not installed."
        if not self.environment:
            return UNAVAILABLE, missing, f"Run: pip install {self.provider}"
        if find_environment(self.environment) is None:
            return NEEDS_ENVIRONMENT, missing, f"Run: tabnsm bench env {self.environment}"
        return READY, "", ""


def slug(name: str) -> str:
    """Lower case, joined by hyphens.

    Examples
    --------
    >>> slug("Random Forest")
    'random-forest'
    """
    return name.lower().replace(" ", "-")


def is_installed(provider: str) -> bool:
    """Whether this interpreter has a package.

    Examples
    --------
    >>> is_installed("scikit-learn"), is_installed("no-such-package")
    (True, False)
    """
    try:
        return find_spec(import_name(provider)) is not None
    except (ImportError, ValueError):
        return False


def import_name(provider: str) -> str:
    """What a package is imported as.

    Examples
    --------
    >>> import_name("scikit-learn"), import_name("pytorch-frame"), import_name("tabm")
    ('sklearn', 'torch_frame', 'tabm')
    """
    renamed = {"scikit-learn": "sklearn", "pytorch-frame": "torch_frame"}
    return renamed.get(provider, provider.replace("-", "_"))
