"""Environments for packages that clash with this one's: a venv each, made once, kept on disk.

An environment sees what is installed here, torch above all, and has only what differs: so it is
small, and a method in it computes with the same torch as TabNSM.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidOptionError, TabNSMError

RECORD = "environment.json"
FORMAT = 1
_LOG = "install.log"
_TAIL_LINES = 6
# A folder that is still unfinished after this time was left by a process that was killed.
_LEFTOVER_SECONDS = 6 * 3600
# Replacing one of these would mean gigabytes, or numbers that do not compare.
_KEPT = ("torch",)


class EnvironmentFailedError(RuntimeError, TabNSMError):
    """An environment that could not be made."""


@dataclass(frozen=True)
class EnvironmentSpec:
    """What an environment is to have.

    Parameters
    ----------
    name : str
        Name of the environment.
    requirements : tuple of str
        As for pip, with exact versions.
    modules : tuple of str
        Modules that must be importable in the end.
    without_requirements : tuple of str
        Packages whose own requirements (pins, limits of Python) are ignored, because they are
        older than what the packages run with.
    """

    name: str
    requirements: tuple[str, ...]
    modules: tuple[str, ...]
    without_requirements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Environment:
    """An environment on disk.

    Parameters
    ----------
    folder : Path
        Its folder.
    packages : dict of str to str
        Versions of what was installed into it.
    """

    folder: Path
    packages: dict[str, str]

    @property
    def name(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return _python(self.folder)


ENVIRONMENTS: dict[str, EnvironmentSpec] = {
    name: EnvironmentSpec(name, requirements, modules, *without_requirements)
    for name, requirements, modules, *without_requirements in (
        ("deeptab", ("deeptab==2.1.0",), ("deeptab.models",)),
        (
            "pytabkit",
            # TabR's SimpleImputer drops all categories from scikit-learn 1.8 on.
            ("pytabkit==1.7.3", "faiss-cpu==1.15.1", "skorch==1.4.0", "scikit-learn==1.7.2"),
            ("pytabkit", "faiss", "skorch"),
        ),
        ("pytorch-frame", ("pytorch-frame==0.3.0",), ("torch_frame.nn.models.excelformer",)),
        ("pytorch-tabnet", ("pytorch-tabnet==4.1.0",), ("pytorch_tabnet.tab_model",)),
        (
            "pytorch-tabular",
            ("pytorch-tabular==1.2.0", "requests==2.34.2", "ts3l==0.70"),
            ("pytorch_tabular.models.danet", "ts3l.models"),
        ),
        ("dnnr", ("tqdm==4.70.1",), ("dnnr",), ("dnnr==0.1.2",)),
        (
            "grande",
            ("tensorflow-cpu==2.21.0", "category-encoders==2.11.2"),
            ("GRANDE.GRANDE",),
            ("GRANDE==0.1.6", "focal-loss==0.0.7"),
        ),
        ("tabpfn", ("tabpfn==9.2.0",), ("tabpfn",)),
    )
}


def find_environment(name: str) -> Environment | None:
    """The environment of a name, None if it has not been made or no longer fits.

    Parameters
    ----------
    name : str
        As in `ENVIRONMENTS`.

    Returns
    -------
    Environment or None
    """
    return open_environment(find_spec_of(name))


def open_environment(spec: EnvironmentSpec) -> Environment | None:
    """The environment that was made from a spec, by this interpreter and for this torch.

    Parameters
    ----------
    spec : EnvironmentSpec
        What it is to have.

    Returns
    -------
    Environment or None
    """
    folder = environments_dir() / spec.name
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        fits = record["made_for"] == _made_for(spec) and _python(folder).exists()
        return Environment(folder, dict(record["packages"])) if fits else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_environment(
    spec: EnvironmentSpec, on_line: Callable[[str], None] = lambda line: None
) -> Environment:
    """Create an environment, atomically.

    Parameters
    ----------
    spec : EnvironmentSpec
        What it is to have.
    on_line : callable
        Called with each line that the installation prints.

    Returns
    -------
    Environment

    Raises
    ------
    EnvironmentFailedError
        If something could not be installed or does not import; nothing is left behind.
    """
    from tabnsm.container import atomic_write

    base = environments_dir()
    base.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(base, spec.name)
    folder = base / f".{spec.name}.{secrets.token_hex(6)}"
    try:
        packages = _build(spec, folder, on_line)
        record = {"format": FORMAT, "made_for": _made_for(spec), "packages": packages}
        atomic_write(folder / RECORD, json.dumps(record, indent=1).encode())
        _replace(folder, base / spec.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Environment(base / spec.name, packages)


def remove_environment(name: str) -> bool:
    """Delete an environment.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    bool
        Whether there was one.
    """
    folder = environments_dir() / find_spec_of(name).name
    if not folder.exists():
        return False
    shutil.rmtree(folder)
    return True


def environments_dir() -> Path:
    """Folder of all environments: below `TABNSM_CACHE`, else below the user's cache folder."""
    from tabnsm.text.cache_file import cache_path

    return cache_path().parent.absolute() / "environments"


def find_spec_of(name: str) -> EnvironmentSpec:
    """What the environment of a name is to have.

    Examples
    --------
    >>> find_spec_of("deeptab").requirements
    ('deeptab==2.1.0',)
    """
    if name not in ENVIRONMENTS:
        raise InvalidOptionError(
            f"environment must be one of {', '.join(ENVIRONMENTS)}; got {name!r}."
        )
    return ENVIRONMENTS[name]


def _build(spec: EnvironmentSpec, folder: Path, on_line: Callable[[str], None]) -> dict[str, str]:
    # Where this interpreter has pip, the environment sees it, too.
    venv.create(folder, with_pip=find_spec("pip") is None, symlinks=sys.platform != "win32")
    python = _python(folder)
    own = Path(_ask(python, "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (own / "tabnsm_parent.pth").write_text("\n".join(_package_folders()) + "\n", encoding="utf-8")
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={v}\n" for name, v in _kept_versions().items()))
    install = [str(python), "-m", "pip", "install", "--no-input"]
    if spec.requirements:
        command = [*install, "--constraint", str(constraints), *spec.requirements]
        _run(command, folder / _LOG, on_line)
    if spec.without_requirements:
        command = [*install, "--no-deps", "--ignore-requires-python", *spec.without_requirements]
        _run(command, folder / _LOG, on_line)
    for module in spec.modules:
        _ask(python, f"import {module}")
    listed = json.loads(_ask(python, _LIST_PACKAGES, str(own)))
    return dict(sorted(listed.items()))


_LIST_PACKAGES = """
import json, sys
from importlib.metadata import distributions
print(json.dumps({d.metadata["Name"]: d.version for d in distributions(path=[sys.argv[1]])}))
"""


def _run(command: list[str], log: Path, on_line: Callable[[str], None]) -> None:
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_clean_environment(),
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    try:
        with log.open("w", encoding="utf-8") as stream, process.stdout:
            for line in process.stdout:
                stream.write(line)
                on_line(line.rstrip())
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if code:
        raise EnvironmentFailedError(_failure("pip could not install it", log.read_text()))


def _ask(python: Path, code: str, *arguments: str) -> str:
    done = subprocess.run(
        [str(python), "-c", code, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env=_clean_environment(),
        check=False,
    )
    if done.returncode:
        message = _failure(f"`{code.strip().splitlines()[-1]}` failed in it", done.stderr)
        raise EnvironmentFailedError(message)
    return done.stdout


def _failure(what: str, output: str) -> str:
    tail = "\n".join(output.strip().splitlines()[-_TAIL_LINES:])
    return f"The environment was not made: {what}. The last lines were:\n{tail}"


def _clean_environment() -> dict[str, str]:
    dropped = {"PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def _package_folders() -> list[str]:
    """Where this interpreter has its packages, in the order in which it looks."""
    names = ("site-packages", "dist-packages")
    return [path for path in sys.path if Path(path).name in names and Path(path).is_dir()]


def _kept_versions() -> dict[str, str]:
    found = {}
    for name in _KEPT:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _made_for(spec: EnvironmentSpec) -> dict[str, Any]:
    """All that decides whether an environment can still be used."""
    # What is empty is left out, so that a new field does not invalidate environments without it.
    fields = {name: value for name, value in asdict(spec).items() if value}
    return json.loads(json.dumps(fields)) | {  # type: ignore[no-any-return]
        "python": platform.python_version(),
        "parent": sys.prefix,
        "kept": _kept_versions(),
    }


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _replace(folder: Path, target: Path) -> None:
    if target.exists():
        aside = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        target.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
    folder.rename(target)


def _remove_leftovers(base: Path, name: str) -> None:
    for folder in base.glob(f".{name}.*"):
        if time.time() - folder.stat().st_mtime > _LEFTOVER_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
