"""Files from the network: retried, resumed, checked, and in place only when whole."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError, TabNSMError

_CHUNK = 1 << 16
_MAX_PAUSE = 30.0
_TIMEOUT = 60.0
# Of all refusals only these may be over a moment later.
_PASSING = {408, 425, 429, 500, 502, 503, 504}
# A broken connection is one of these, depending on where it broke.
_BROKEN = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


class DownloadError(OSError, TabNSMError):
    """A file that could not be had from the network."""


class _PassingError(Exception):
    """A fault that another try may not meet."""

    def __init__(self, reason: str, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.pause = pause


@dataclass(frozen=True)
class Fetched:
    """A file that was downloaded.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str
        Of its content.
    n_bytes : int
        Its size.
    """

    path: Path
    sha256: str
    n_bytes: int


def download_file(
    url: str,
    path: str | Path,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    tries: int = 6,
    pause: float = 1.0,
    on_progress: Callable[[int, int | None], None] | None = None,
) -> Fetched:
    """Download a file; what an interrupted call left behind is continued, not repeated.

    Parameters
    ----------
    url : str
        Address, http or https.
    path : str or Path
        The file to make; it appears when it is whole and its checksum is right.
    sha256, md5 : str or None
        Checksum that its content must have.
    tries : int
        How often to try without receiving a single new byte, before giving up.
    pause : float
        Seconds before the second try; doubled before each further one.
    on_progress : callable or None
        Called with the bytes so far, and the bytes in all where the server reports them.

    Returns
    -------
    Fetched

    Raises
    ------
    DownloadError
        If the server refuses, or breaks off too often.
    InvalidDataError
        If the content does not have the checksum.
    """
    if not url.startswith(("http://", "https://")):
        raise InvalidDataError(f"url must begin with http:// or https://, got {url!r}.")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _Part(path.with_name(f".{path.name}.part"), url)
    failures, wrong_content = 0, 0
    while True:
        before = part.n_bytes
        try:
            _receive(url, part, on_progress)
        except _PassingError as fault:
            failures = 1 if part.n_bytes > before else failures + 1
            if failures >= tries:
                raise DownloadError(
                    f"{url} could not be downloaded in {tries} tries ({fault}). Try again later: "
                    f"{part.n_bytes:,} bytes are kept and will be continued."
                ) from fault
            time.sleep(max(fault.pause, min(pause * 2 ** (failures - 1), _MAX_PAUSE)))
            continue
        found = part.digests()
        if sha256 in (None, found["sha256"]) and md5 in (None, found["md5"]):
            break
        part.discard()
        wrong_content += 1
        # Two versions may have met in a resumed file; twice in a row it is the server's file.
        if wrong_content == 2:
            raise InvalidDataError(
                f"{url} must have the checksum {sha256 or md5}, got "
                f"{found['sha256' if sha256 else 'md5']}. Its content has changed; get the file "
                "elsewhere."
            )
    n_bytes = part.n_bytes
    part.finish(path)
    return Fetched(path, found["sha256"], n_bytes)


class _Part:
    """The bytes so far, and a note of which version of the file they belong to."""

    def __init__(self, path: Path, url: str) -> None:
        self.path, self.url = path, url
        self._note = path.with_name(f"{path.name}.json")

    @property
    def n_bytes(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def version(self) -> str | None:
        """What the server calls the version of these bytes; None if they cannot be continued."""
        try:
            note = json.loads(self._note.read_text())
        except (OSError, ValueError):
            return None
        return note["version"] if note.get("url") == self.url else None

    def begin(self, version: str | None) -> None:
        """Start from nothing."""
        from tabnsm.container import atomic_write  # imports torch

        self.discard()
        atomic_write(self._note, json.dumps({"url": self.url, "version": version}).encode())
        self.path.touch()

    def digests(self) -> dict[str, str]:
        sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        with self.path.open("rb") as stream:
            while block := stream.read(_CHUNK):
                sha256.update(block)
                md5.update(block)
        return {"sha256": sha256.hexdigest(), "md5": md5.hexdigest()}

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def finish(self, path: Path) -> None:
        os.replace(self.path, path)
        self._note.unlink(missing_ok=True)


def _receive(url: str, part: _Part, on_progress: Callable[[int, int | None], None] | None) -> None:
    """Get the rest of the file in one connection."""
    headers = {"User-Agent": "tabnsm", "Accept-Encoding": "identity"}
    start, version = part.n_bytes, part.version
    if start and version:
        # The server sends the whole file instead if it is another one by now.
        headers |= {"Range": f"bytes={start}-", "If-Range": version}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            _store(response, part, on_progress)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # nothing is left to send, or the file has shrunk
                if error.headers.get("Content-Range") == f"bytes */{start}":
                    return
                part.discard()
                raise _PassingError("the server has no such part of the file") from error
            if error.code in _PASSING:
                wait = error.headers.get("Retry-After", "")
                seconds = min(float(wait), _MAX_PAUSE) if wait.isdigit() else 0.0
                raise _PassingError(f"HTTP {error.code}", seconds) from error
            raise DownloadError(
                f"{url} cannot be downloaded: the server says HTTP {error.code} {error.reason}."
            ) from error
    except _BROKEN as error:
        raise _PassingError(f"{type(error).__name__}: {error}") from error


def _store(
    response: Any, part: _Part, on_progress: Callable[[int, int | None], None] | None
) -> None:
    wanted = f"bytes {part.n_bytes}-"
    continued = response.status == 206
    if continued and not response.headers.get("Content-Range", "").startswith(wanted):
        part.discard()
        raise _PassingError("the server sent another part than the one asked for")
    if not continued:
        # A weak tag does not promise equal bytes, so it cannot be continued from.
        tag = response.headers.get("ETag") or ""
        version = response.headers.get("Last-Modified") if tag.startswith("W/") else tag
        part.begin(version or response.headers.get("Last-Modified"))
    length = response.headers.get("Content-Length")
    total = None if length is None else part.n_bytes + int(length)
    done = part.n_bytes
    with part.path.open("ab") as stream:
        while block := response.read(_CHUNK):
            stream.write(block)
            done += len(block)
            if on_progress is not None:
                on_progress(done, total)
    if total is not None and done < total:
        raise _PassingError(f"the connection ended after {done:,} of {total:,} bytes")
