"""The process of one run: ``python -m tabnsm_bench.worker``, controlled through pipes.

The parent writes one line of JSON to standard input and keeps it open: when it ends, the parent
is gone, and so is this process. Standard output carries one line of JSON per phase, the last
of which is "finished" once the result is on disk, or an error. Whatever a method prints goes to
standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

_N_FRAMES = 4


def main() -> int:
    """Do the run that standard input describes.

    Returns
    -------
    int
        Exit code.
    """
    output = _private_output()
    request = json.loads(_read_line())
    threading.Thread(target=_die_with_parent, args=(request["scratch"],), daemon=True).start()

    def send(**message: str) -> None:
        output.write(json.dumps(message) + "\n")
        output.flush()

    try:
        _run(request, lambda phase: send(phase=phase))
    except Exception as error:
        send(error=_summary(error))
        traceback.print_exc()
        return 1
    return 0


def _run(request: dict[str, Any], on_phase: Callable[[str], None]) -> None:
    from tabnsm_bench.execute import execute
    from tabnsm_bench.protocol import RunSpec
    from tabnsm_bench.store import write_result

    result = execute(
        RunSpec.from_dict(request["spec"]),
        Path(request["data_dir"]),
        n_threads=request["n_threads"],
        on_phase=on_phase,
    )
    write_result(result, request["results_dir"])
    on_phase("finished")


def _summary(error: BaseException) -> str:
    """The error and where it came from, without the paths of this machine."""
    frames = traceback.extract_tb(error.__traceback__)[-_N_FRAMES:]
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    return f"{type(error).__name__}: {error} [{where}]"


def _private_output() -> TextIO:
    """The pipe to the parent, out of reach of anything that prints, C libraries included."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return pipe


def _read_line() -> bytes:
    """Read the first line and nothing beyond it, so that the end of input can be waited for."""
    line = bytearray()
    while byte := os.read(0, 1):
        if byte == b"\n":
            break
        line += byte
    return bytes(line)


def _die_with_parent(scratch: str) -> None:
    while os.read(0, 1):
        pass
    shutil.rmtree(scratch, ignore_errors=True)  # the parent would have, were it not gone
    with contextlib.suppress(OSError, AttributeError):
        # Processes that the method started are of this group, unlike the parent.
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
