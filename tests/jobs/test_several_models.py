"""``ss.anneal`` of a list of models: the results of calls one by one, with the seeds that the rule says."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss


def test_a_list_of_models_is_annealed_as_one_by_one() -> None:
    models = [ss.EdwardsAnderson(ss.cubic(3), seed=k) for k in range(3)] + [ss.Ising(ss.square(64))]
    settings = {"temperatures": [2.0, 1.0], "sweeps": 3, "replicas": 130}
    for chosen in (models, (models[-1], models[-1])):
        many = ss.anneal(chosen, **settings, seed=2**64 - 2, threads=2)
        for k, (model, found) in enumerate(zip(chosen, many, strict=True)):
            one = ss.anneal(model, **settings, seed=(2**64 - 2 + k) % 2**64)
            np.testing.assert_array_equal(found.energy, one.energy)
            np.testing.assert_array_equal(found.best_energy, one.best_energy)
    assert ss.anneal([], **settings) == []
    with pytest.raises(ss.InputError, match="model 1 of the list: an object of type int is no model"):
        ss.anneal([models[0], 5], **settings)
    with pytest.raises(ss.InputError, match="name a file for one model"):
        ss.anneal(models, **settings, out="all.h5")
    with pytest.raises(ss.InputError, match=r"^replicas = 'many' has the wrong type"):
        ss.anneal(models, replicas="many")


@pytest.mark.parametrize("models", [ss.Ising(ss.square(4)), [ss.Ising(ss.square(4))]], ids=["one", "several"])
@pytest.mark.parametrize(
    ("args", "keywords", "words"),
    [
        (([2.0],), {"temperatures": [1.0]}, "multiple values for argument 'temperatures'"),
        ([None] * 30, {}, "too many positional arguments"),
    ],
)
def test_several_models_refuse_what_one_refuses(models, args, keywords, words) -> None:
    with pytest.raises(ss.InputError, match=f"^anneal was given {words}: give each argument once") as caught:
        ss.anneal(models, *args, **keywords)
    assert isinstance(caught.value, TypeError)
