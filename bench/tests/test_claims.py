from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from tabnsm_bench.claims import Claim

HOLD = """
import sys
from pathlib import Path
from tabnsm_bench.claims import Claim
claim = Claim.acquire(Path(sys.argv[1]))
print("taken" if claim is None else "mine", flush=True)
sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_running_process_keeps_its_claim_and_a_killed_one_loses_it(tmp_path: Path) -> None:
    path = tmp_path / "claim"
    with hold(path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mine\n"
        assert json.loads(path.read_text())["pid"] == holder.pid
        assert Claim.acquire(path) is None
        holder.kill()
    assert path.exists()  # nobody was left to remove it
    claim = Claim.acquire(path)
    assert claim is not None
    claim.release()
    assert not path.exists()


def test_of_many_threads_one_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "claim"
    path.write_text("left behind")
    got: list[Claim | None] = []
    barrier = threading.Barrier(16)

    def take() -> None:
        barrier.wait()
        got.append(Claim.acquire(path))

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [claim for claim in got if claim is not None]
    assert len(got) == 16
    assert len(winners) == 1
    winners[0].release()


def test_taking_turns_never_overlaps(tmp_path: Path) -> None:
    """Released files are removed; whoever opened one just before must notice."""
    path = tmp_path / "claim"
    inside = 0
    most = 0
    turns = 0

    def work() -> None:
        nonlocal inside, most, turns
        for _ in range(100):
            claim = Claim.acquire(path)
            if claim is None:
                continue
            inside += 1
            most = max(most, inside)
            turns += 1
            time.sleep(0.0005)
            inside -= 1
            claim.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert turns > 0
    assert not path.exists()
