"""One network of a fit: how it begins, what trains it, and all that decides its bits."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from tabnsm.container import content_hash
from tabnsm.nn.model import TabNSM
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.budget import TimeBudget
from tabnsm.training.descent import make_optimizer
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.history import History
from tabnsm.training.loop import Report, Trainer, TrainingState
from tabnsm.training.objective import Objective
from tabnsm.training.rise import RiseSampler

if TYPE_CHECKING:
    from tabnsm.training.prepare import PreparedFit


def make_trainer(
    prepared: PreparedFit,
    device: torch.device,
    report: Report | None = None,
    budget: TimeBudget | None = None,
) -> Trainer:
    """What trains one network; `report` and `budget` as in `Trainer`."""
    objective = prepared.options.objective
    return Trainer(
        prepared.options.training,
        Objective(objective, objective.losses_of(prepared.data.train_target)),
        prepared.target,
        prepared.data,
        device,
        report,
        budget,
    )


def network_generator(prepared: PreparedFit, number: int) -> torch.Generator:
    """Random numbers of a network: the first one goes on from the draws of the split."""
    if number == 0:
        return prepared.generator()
    return torch.Generator().manual_seed(prepared.seed + number)


def new_network(prepared: PreparedFit, generator: torch.Generator, device: torch.device) -> TabNSM:
    """A network as `generator` begins it."""
    encoder = prepared.encoder
    return TabNSM(
        encoder.n_features,
        category_sizes=encoder.category_sizes,
        bins=encoder.bins,
        n_targets=prepared.target.n_targets,
        generator=generator,
        **dataclasses.asdict(prepared.options.architecture),
    ).to(device)


def initial_state(
    prepared: PreparedFit,
    number: int,
    device: torch.device,
    make_sampler: Callable[[torch.Generator], RiseSampler] | None = None,
) -> TrainingState:
    """A network as its random numbers, or an earlier fit, begin it, and all that training needs."""
    options, generator = prepared.options, network_generator(prepared, number)
    model = new_network(prepared, generator, device)
    if prepared.start:
        model.load_state_dict(prepared.start[number])
    training = options.training
    if make_sampler is None:
        sampler = RiseSampler(prepared.data.train.n_rows, options.rise, generator)
    else:
        sampler = make_sampler(generator)
    return TrainingState(
        model=model,
        optimizer=make_optimizer(model, training),
        average=WeightAverage(model, training.ema_decay),
        sampler=sampler,
        monitor=ValidationMonitor(training.patience, training.scheduler_patience),
        generator=generator,
        best_weights={},
        history=History(eval_metric=training.eval_metric),
    )


def fingerprint(prepared: PreparedFit) -> str:
    """Hash of all that decides the bits of a run, but for how long and how loudly it runs."""
    data = prepared.data
    tensors, meta = prepared.encoder.to_state()
    for number, weights in enumerate(prepared.start):
        tensors |= {f"start.{number}.{name}": tensor for name, tensor in weights.items()}
    for part in ("train", "validation"):
        table = getattr(data, part)
        tensors[f"{part}.dense"] = table.identity
        for k, text in enumerate(table.texts):
            tensors[f"{part}.text_index.{k}"] = text.index
            tensors[f"{part}.text.{k}"] = text.values
        tensors[f"{part}.target"] = torch.from_numpy(getattr(data, f"{part}_target"))
        weight = getattr(data, f"{part}_weight")
        if weight is not None:
            tensors[f"{part}.weight"] = torch.from_numpy(weight)
    stated: dict[str, Any] = prepared.options.to_dict()
    stated |= {"seed": prepared.seed, "columns": meta["columns"]}
    for config, name in (
        ("encoder", "verbose"),
        ("encoder", "text_cache"),
        ("training", "time_limit"),
    ):
        del stated[config][name]
    return content_hash(tensors, json.dumps(stated, sort_keys=True))
