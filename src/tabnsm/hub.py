"""HubRegressor: the methods by which models of Hugging Face are saved, loaded and shared."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tabnsm.atomic import atomic_write
from tabnsm.errors import InvalidOptionError, MissingExtraError, ModelFileError
from tabnsm.inspection import InspectedRegressor
from tabnsm.sklearn_base import check_is_fitted

if TYPE_CHECKING:
    from tabnsm.text import TextEncoder

MODEL_FILE, CARD_FILE = "model.safetensors", "README.md"

_FRONT_MATTER = """\
---
library_name: tabnsm
pipeline_tag: tabular-regression
tags:
- tabnsm
- tabular-regression
- regression
---

"""

_USAGE = """
## Use

```python
from tabnsm import TabNSMRegressor

model = TabNSMRegressor.from_pretrained("{name}")
model.predict(table)  # a DataFrame with the columns above
```
"""


class HubRegressor(InspectedRegressor):
    """Folders with a model and its card, on this machine and on the Hugging Face Hub."""

    def save_pretrained(self, save_directory: str | Path) -> None:
        """Write the model and its card to a folder, as models of Hugging Face are.

        The folder has ``model.safetensors``, the file of `save`, and ``README.md``, the card with
        the front matter that the Hub reads. The file has no rows of the fit (``keep_rows=False``).
        A card that is there stays as it is, because people edit them.

        Parameters
        ----------
        save_directory : str or Path
            Made where it is missing.
        """
        check_is_fitted(self, "model_")
        _write_folder(self, Path(save_directory), Path(save_directory).resolve().name)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        device: str = "auto",
        text_encoder: str | TextEncoder | None = None,
        **download: Any,
    ) -> Self:
        """Read a model from a folder of `save_pretrained`, or from the Hugging Face Hub.

        Parameters
        ----------
        pretrained_model_name_or_path : str or Path
            The folder, or the name of a repository on the Hub, such as "user/houses", which needs
            the extra "huggingface".
        device, text_encoder
            As for `load`.
        **download
            Options of `huggingface_hub.hf_hub_download`, such as `revision`, `token`, `cache_dir`
            and `local_files_only`.

        Returns
        -------
        TabNSMRegressor
            Predicts bit for bit as the saved one did.
        """
        source = pretrained_model_name_or_path
        is_name = re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", str(source)) is not None
        if Path(source).is_dir():
            path = Path(source) / MODEL_FILE
            if not path.exists():
                raise ModelFileError(
                    f"A folder of save_pretrained must have the file {MODEL_FILE}, but {source} "
                    "does not. Pass the folder itself, or load a file with `load`."
                )
        elif is_name and not isinstance(source, os.PathLike):
            try:
                from huggingface_hub import hf_hub_download
            except ImportError as error:
                raise MissingExtraError("huggingface", "Models of the Hub") from error
            path = Path(hf_hub_download(str(source), MODEL_FILE, **download))
        else:
            raise ModelFileError(
                "from_pretrained needs a folder that is there, or the name of a repository such "
                f'as "user/houses", got {str(source)!r}.'
            )
        return cls.load(path, device=device, text_encoder=text_encoder)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Upload the folder of `save_pretrained` to the Hugging Face Hub.

        Needs the extra "huggingface", and a token of the Hub.

        Parameters
        ----------
        repo_id : str
            Repository, such as "user/houses"; made where it is missing.
        **options
            Of `huggingface_hub.ModelHubMixin.push_to_hub`, such as `private`, `commit_message`,
            `branch`, `create_pr` and `token`.

        Returns
        -------
        str
            Address of the commit.
        """
        check_is_fitted(self, "model_")
        return str(hub_model(self, repo_id).push_to_hub(repo_id, **options))


def hub_model(model: HubRegressor, name: str) -> Any:
    """The model as an object of huggingface_hub, which knows how to upload it.

    The regressor is no subclass of `ModelHubMixin` itself: that would import huggingface_hub with
    tabnsm, and its constructor changes what scikit-learn's `clone` relies on.
    """
    try:
        from huggingface_hub import ModelHubMixin
    except ImportError as error:
        raise MissingExtraError("huggingface", "Uploads to the Hub") from error

    class HubModel(ModelHubMixin):  # type: ignore[misc]
        def _save_pretrained(self, save_directory: Path) -> None:
            _write_folder(model, save_directory, name)

    return HubModel()


def _write_folder(model: HubRegressor, folder: Path, name: str) -> None:
    """Write the model, and a card that calls it by that name."""
    if folder.exists() and not folder.is_dir():
        raise InvalidOptionError(
            f"save_directory must be a folder, got the file {folder}. `save` writes a single file."
        )
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / MODEL_FILE, keep_rows=False)
    if not (folder / CARD_FILE).exists():
        card = _FRONT_MATTER + model.card() + _USAGE.format(name=name)
        atomic_write(folder / CARD_FILE, card.encode())
