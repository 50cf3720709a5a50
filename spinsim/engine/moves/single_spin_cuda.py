"""Single-spin dynamics of words of replicas on a GPU: a thread for each replica (kernels/metropolis/single_spin.cu)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy
from spinsim.cuda.launch import ADDRESS, Launch, round_keys, struct_type
from spinsim.engine.cuda import CudaParts
from spinsim.engine.cuda_queue import OnDevice
from spinsim.engine.layouts.replica_packed_cuda import OrderedWords, place_of
from spinsim.engine.moves.metropolis.unpacked import UnpackedPlan
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.engine.moves.single_spin import HEAT_BATH, SingleSpin
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.packing import LANES

FILE: Final = "metropolis/single_spin.cu"
VISITS: Final = struct_type(order=ADDRESS, place=ADDRESS, near=ADDRESS, start=ADDRESS, sites=np.uint32, drawn=np.uint32,
                            heat_bath=np.uint32)  # fmt: skip


def of_move(move: SingleSpin, model: Ising, replicas: int, first_sample: int, parts: CudaParts) -> FastPath | None:
    """Make the sweeps of a move; None for other layouts, such as large lattices and dense models."""
    words, plan, on_device = parts.state, model.once(UnpackedPlan), OnDevice()
    if not isinstance(words, OrderedWords):
        return None
    order, place, rows = move.order_of(plan), place_of(words.site_at), (plan.couplings, plan.fields)
    visits = on_device(VISITS, order=order, place=place, near=place[plan.neighbour], start=plan.start.astype(np.int64),
                       sites=model.sites, drawn=not order.size, heat_bath=move.name.endswith(HEAT_BATH))  # fmt: skip
    strides = [np.uint64(one.shape[1] if len(one) > 1 else 0) for one in rows]
    grid = words.present.shape[1], model.samples, 1
    integer = "int" if plan.couplings.dtype == np.int32 else "long long"
    launch = Launch(parts.queue.device, FILE, instance("sweep_single_spins", integer, move.rng_rounds), {
        "state": words.present, "visits": visits, "couplings": cupy.asarray(rows[0]), "fields": cupy.asarray(rows[1]),
        "coupling_stride": strides[0], "field_stride": strides[1], "replicas": np.uint32(replicas),
        "double_beta": np.float64(0), "zero_acceptance": np.float64(move.zero_acceptance),
        "first_sample": np.uint32(first_sample), "sweep": np.uint64(0), "key": round_keys(0),
    })  # fmt: skip

    def sweep(moment: Moment, _: Any, kept: OnDevice = on_device) -> None:  # which keeps the arrays of the struct
        if np.ndim(moment.beta):
            raise InputError(f"replicas of {move.name} dynamics have one temperature on a GPU: use no ladder")
        beta, key = 2.0 * model.quantum * moment.beta, round_keys(moment.seed)
        launch(parts.queue.stream, grid, LANES, double_beta=beta, sweep=moment.time, key=key)

    return sweep
