"""One network in many workers of a Ray cluster: each has a part of the rows."""

from __future__ import annotations

import io
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tabnsm.container import read_container
from tabnsm.distributed.checkpoint import ShardCheckpoint, recover_list
from tabnsm.distributed.cluster import ClusterTraining, failure, import_ray
from tabnsm.distributed.encoding import ClusterTable
from tabnsm.distributed.epochs import show_new, shown_epochs
from tabnsm.distributed.group import Group
from tabnsm.distributed.process_group import train_network
from tabnsm.distributed.shard import Shard, read_shard, write_shard
from tabnsm.distributed.storage import RunFolder
from tabnsm.distributed.trainer import ShardTrainer, begin_network
from tabnsm.threads import one_torch_thread
from tabnsm.training.budget import TimeBudget
from tabnsm.training.callbacks import CallbackList
from tabnsm.training.checkpoint import FILE_NAME
from tabnsm.training.exchange import apply_torch_settings, torch_settings
from tabnsm.training.history import History
from tabnsm.training.loop import TrainingState
from tabnsm.training.network import fingerprint, new_network
from tabnsm.training.progress import TrainingProgress
from tabnsm.work_folder import work_folder

MAX_FAILURES = 3
"""How often training goes on from its last epoch after a worker or a machine was lost."""
_SECONDS_TO_END = 30.0
_FREE = "Free space in storage_path, or name another."
_KEPT = (
    "Its last epoch is in storage_path: the same call goes on from there, and random_state must "
    "be the same number."
)


class RowsTraining(ClusterTraining):
    """Trains each network in all workers by Ray Train, and goes on if some of them are lost."""

    def train(
        self,
        checkpoint_dir: str | Path | None,
        resume: bool,
        progress: TrainingProgress | None = None,
        callbacks: CallbackList | None = None,
    ) -> None:
        """Train all networks, one after the other."""
        ray = import_ray()
        whole = Shard.whole_fit(self.prepared)
        for rank in range(self.num_workers):
            content = io.BytesIO()
            write_shard(whole.cut(rank, self.num_workers), content)
            try:
                self.folder.write(f"shard-{rank}", content.getvalue())
            except OSError as error:
                self.folder.remove()
                raise failure(error, _FREE) from error
        config = {
            "storage": (self.folder.storage_path, self.folder.name),
            "fingerprint": fingerprint(self.prepared),
            "torch": torch_settings(),
            "rows": self._put_rows(ray),
            "work_dir": self.work_dir,
        }
        with shown_epochs(ray, progress) as mailbox:
            self._train_each(ray, config | {"mailbox": mailbox}, progress, callbacks)

    def _train_each(
        self,
        ray: Any,
        config: dict[str, Any],
        progress: TrainingProgress | None,
        callbacks: CallbackList | None,
    ) -> None:
        """Train one network after the other."""
        for number in range(self.n_networks):
            if number and self.budget.seconds_left() == 0:
                break
            limit = None
            if self.budget.is_limited:
                limit = time.time() + max(self.budget.seconds_left(), 1e-3)
            network = f"network-{number + 1}"
            last = recover_list(self.folder, network)
            job = config | {"number": number, "ends": limit, "last": last}
            model, history = self._train_on_cluster(ray, number, job)
            if progress is not None:
                show_new(progress, number, history)
            self._kept.add(number, history.stop_reason, model, history)
            if callbacks is not None:
                stops = callbacks.on_epoch(number + 1, history)  # of all epochs at once
                if callbacks.on_network(number + 1, history) or stops:
                    break

    def _put_rows(self, ray: Any) -> list[Any]:
        """What each worker needs to encode rows of its own; nothing where all are encoded."""
        table = self.prepared.data.train
        if not isinstance(table, ClusterTable):
            return []
        size = self.num_workers
        return [ray.put(table.source.of_worker(rank, size)) for rank in range(size)]

    def _train_on_cluster(self, ray: Any, number: int, job: dict[str, Any]) -> tuple[Any, History]:
        """Train one network; its best weights and history."""
        from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        class InterruptedTrainer(TorchTrainer):  # type: ignore[misc]
            """Leaves Ctrl-C to this process, which tells the workers to end."""

            controller: Any = None

            def _register_sigint_handler(self, controller: Any) -> None:
                self.controller = controller

        resources = {"CPU": self.cpus, **({"GPU": 1} if self.use_gpu else {})}
        trainer = InterruptedTrainer(
            train_on_worker,
            train_loop_config=job,
            torch_config=TorchConfig(backend="nccl" if self.use_gpu else "gloo"),
            scaling_config=ScalingConfig(
                num_workers=self.num_workers,
                use_gpu=self.use_gpu,
                resources_per_worker=resources,
            ),
            run_config=RunConfig(
                name=f"{self.folder.name}/network-{number + 1}",
                storage_path=self.folder.storage_path,
                failure_config=FailureConfig(max_failures=MAX_FAILURES),
                checkpoint_config=CheckpointConfig(num_to_keep=1),
            ),
        )
        try:
            result = trainer.fit()
        except KeyboardInterrupt:
            with suppress(Exception):  # it has ended already, or is gone
                ray.get(trainer.controller.abort.remote(), timeout=_SECONDS_TO_END)
            raise
        except Exception as error:  # each kind of loss has its own class, of several packages
            raise failure(error, _KEPT) from error
        with result.checkpoint.as_directory() as folder:
            name = FILE_NAME if number == 0 else f"checkpoint-{number + 1}.safetensors"
            tensors, meta = read_container(Path(folder) / name)
        model = new_network(self.prepared, torch.Generator(), self.device)
        best = {k.removeprefix("best."): v for k, v in tensors.items() if k.startswith("best.")}
        model.load_state_dict(best)
        model.eval()
        return model, History.from_dict(meta["history"])


class ReportedCheckpoint:
    """Hands the state of training to Ray after every epoch, which keeps it in the storage.

    All workers wait for each other there, so that each must save equally often.

    Parameters
    ----------
    fingerprint : str
    number : int
    group : Group
    """

    def __init__(self, fingerprint: str, number: int, group: Group) -> None:
        self.arguments = (fingerprint, number, group)

    def save(self, state: TrainingState) -> None:
        """Write this worker's part, and wait until all parts are stored."""
        import ray.train

        last = state.history.epochs[-1]
        with tempfile.TemporaryDirectory(prefix="tabnsm-") as folder:
            ShardCheckpoint(folder, *self.arguments).save(state)
            ray.train.report(
                {"epoch": last.epoch, "validation_rmse": last.validation_rmse},
                checkpoint=ray.train.Checkpoint.from_directory(folder),
            )

    def load(self, state: TrainingState, storage: RunFolder, last: str | None) -> None:
        """Bring `state` to the last epoch that is stored, if there is one.

        `last` is a checkpoint in the storage that Ray does not know of.
        """
        import ray.train

        stored = ray.train.get_checkpoint()
        if stored is None and last is not None:
            stored = ray.train.Checkpoint(f"{storage.path}/{last}", storage.system)
        if stored is not None:
            with stored.as_directory() as folder:
                ShardCheckpoint(folder, *self.arguments).load(state)


def train_on_worker(config: dict[str, Any]) -> None:
    """What each worker of Ray Train runs."""
    import ray
    from ray.train.torch import get_device

    apply_torch_settings(config["torch"])
    device = get_device()
    group = Group(device)
    storage = RunFolder(*config["storage"])
    content = storage.read(f"shard-{group.rank}")
    if content is None:
        raise FileNotFoundError(
            f"There is no shard-{group.rank} in storage_path {config['storage'][0]}: it must be a "
            "folder that all machines share, or a URI."
        )
    shard = read_shard(content)
    with ExitStack() as stack:
        stack.enter_context(one_torch_thread())
        if config["rows"]:
            own = ray.get(config["rows"][group.rank])
            place = stack.enter_context(work_folder(config["work_dir"]))
            data = own.encode(shard.prepared.data, place)
            shard = replace(shard, prepared=replace(shard.prepared, data=data))
        state = begin_network(shard, config["number"], group, device)
        checkpoint = ReportedCheckpoint(config["fingerprint"], config["number"], group)
        checkpoint.load(state, storage, config["last"])
        left = None if config["ends"] is None else max(config["ends"] - time.time(), 1e-3)
        mailbox, number = config["mailbox"], config["number"]

        def report(history: History) -> None:
            mailbox.put.remote(number, history.to_dict())

        is_shown = mailbox is not None and group.rank == 0
        trainer = ShardTrainer(shard, group, device, report if is_shown else None, TimeBudget(left))
        if train_network(trainer, state, checkpoint) is None:
            raise ValueError("The validation score was not finite in epoch 1; lower learning_rate.")
