"""The process inside an environment: one method, fitted and asked through files.

    python -P serve.py FOLDER_OF_TABNSM

Requests and replies are lines of JSON on standard input and output; arrays are npz files that
the lines name. What a package prints goes to standard error. When standard input ends, the
parent is gone, and so is this process, even in the middle of a fit.

This file is run as a script by an interpreter whose packages may not be those that tabnsm
needs: it imports the adapters and the modules they use, but never ``tabnsm`` itself.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
import types
from pathlib import Path
from typing import Any

Request = dict[str, Any]
_N_FRAMES = 4


def main() -> None:
    """Answer requests until there are no more."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    _without_package_init()
    method: Any = None
    while True:
        request = json.loads(requests.get())
        try:
            if request["do"] == "make":
                from tabnsm_bench.baselines.catalog import make_here

                method = make_here(request["key"], request["options"])
                reply: Request = {}
            elif request["do"] == "fit":
                reply = {"facts": _fit(method, request)}
            else:
                reply = _predict(method, request)
        except Exception as error:
            traceback.print_exc()
            reply = {"error": str(error), "kind": type(error).__name__, "where": _where(error)}
        output.write(json.dumps(reply) + "\n")
        output.flush()


def _read(requests: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)


def _without_package_init() -> None:
    """Let modules of both packages be imported without what an ``__init__`` imports.

    Their folders are named, not put on the path: that would bring the packages beside them.
    """
    folders = {"tabnsm": sys.argv[1], "tabnsm_bench": str(Path(__file__).resolve().parents[1])}
    for name, folder in folders.items():
        package = types.ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package


def _fit(method: Any, request: Request) -> Request:
    import numpy as np

    from tabnsm_bench.protocol import Part, Prepared

    with np.load(request["arrays"]) as arrays:
        train = Part(arrays["train_x"], arrays["train_y"])
        validation = Part(arrays["validation_x"], arrays["validation_y"])
    nothing = Part(train.x[:0], train.y[:0])
    data = Prepared(
        train,
        validation,
        nothing,
        category_sizes=tuple(request["category_sizes"]),
        feature_names=tuple(request["feature_names"]),
        encode_seconds=0.0,
        train_frame=None,
        validation_frame=None,
        test_frame=None,
    )
    started = time.process_time()
    facts: Request = method.fit(
        data,
        seed=request["seed"],
        time_limit=request["time_limit"],
        n_threads=request["n_threads"],
    )
    cpu_seconds = round(time.process_time() - started, 4)
    return facts | {"fit_cpu_seconds": cpu_seconds, "peak_memory_mb": _peak_memory_mb()}


def _predict(method: Any, request: Request) -> Request:
    import numpy as np

    with np.load(request["arrays"]) as arrays:
        predicted = method.predict(arrays["x"], None)
    np.savez(request["out"], y=np.asarray(predicted, dtype=np.float64))
    return {}


def _where(error: BaseException) -> str:
    """The last calls before an error, the innermost first, without the paths of this machine."""
    frames = traceback.extract_tb(error.__traceback__)[-_N_FRAMES:]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))


def _peak_memory_mb() -> float | None:
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)


if __name__ == "__main__":
    main()
