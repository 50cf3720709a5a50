"""Sites removed before a search: the lowest energy stays, exactly, and the rest is undone."""

from __future__ import annotations

import numpy as np
import pytest
from lowest import energies, problem, states

import spinsim as ss
from spinsim.optimum import fixing
from spinsim.optimum.fixing import reduce

SIZE = 5
COMPLETE = np.column_stack(np.triu_indices(SIZE, 1))


def checked(model: ss.Ising, stars: bool = True) -> fixing.Reduced:
    """The reduced problem, after comparing its lowest energy with that of the whole."""
    reduced = reduce(model, stars)
    best, lowest = [], reduced.offset_energy
    for part in reduced.parts:
        assert not part.rounded or part is model
        of_part = energies(part)
        best.append(states(part.sites)[:, of_part.argmin()])
        lowest += float(of_part.min())
    spins = reduced.undo(best)
    assert spins.dtype == np.int8
    assert spins.shape == (model.sites,)
    assert model.energy(spins[None])[0] == lowest == energies(model).min()
    counts = dict(reduced.counts)
    assert counts.pop("components") == len(reduced.parts)
    assert sum(counts.values()) + sum(part.sites for part in reduced.parts) == model.sites
    return reduced


def counted(model: ss.Ising, stars: bool = True) -> dict[str, int]:
    return {name: number for name, number in checked(model, stars).counts.items() if number}


def test_the_lowest_energy_of_ten_thousand_problems_stays() -> None:
    rng, seen = np.random.default_rng(1), dict.fromkeys(reduce(ss.Ising(ss.chain(2))).counts, 0)
    for k in range(10_000):
        for name, number in checked(problem(rng), stars=bool(k % 3)).counts.items():
            seen[name] += number
    assert min(seen.values()) >= 10, seen


def test_energies_differ_by_the_offset_for_all_spins_of_the_parts() -> None:
    rng, met = np.random.default_rng(2), 0
    for _ in range(500):
        model = problem(rng, 60)
        reduced = reduce(model)
        parts = [rng.choice(np.array([-1, 1], np.int8), part.sites) for part in reduced.parts]
        rest = sum(part.energy(spins[None])[0] for part, spins in zip(reduced.parts, parts, strict=True))
        assert model.energy(reduced.undo(parts)[None])[0] == reduced.offset_energy + rest
        met += bool(parts)
    assert met > 100


def test_compiled_rules_do_what_python_does() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        model = problem(rng, 40)
        by_python = reduce(model)
        kernels = [getattr(fixing, name) for name in ("_fill", "_remove", "_find_parts", "_undo")]
        with pytest.MonkeyPatch.context() as patch:
            for kernel in kernels:
                patch.setattr(kernel, "with_steps", lambda _, *arguments, kernel=kernel: kernel(*arguments))
            compiled = reduce(model)
        assert by_python.counts == compiled.counts
        assert by_python.offset_energy == compiled.offset_energy
        assert [p.content_sha256() for p in by_python.parts] == [p.content_sha256() for p in compiled.parts]


def test_nothing_to_remove_leaves_the_model_itself() -> None:
    model = ss.EdwardsAnderson(ss.cubic(6))
    reduced = reduce(model)
    assert reduced.parts == [model]
    assert reduced.offset_energy == 0
    assert np.array_equal(reduced.undo([np.ones(model.sites, np.int8)]), np.ones(model.sites))


def dense(sites: int, change: str) -> ss.Ising:
    """A dense problem of couplings +-1, with something that keeps it from being left as it is, or that does not."""
    rng, edges = np.random.default_rng(4), np.array(np.triu_indices(sites, 1)).T
    edges = np.where(rng.random((len(edges), 1)) < 0.5, edges, edges[:, ::-1])[rng.permutation(len(edges))]
    couplings, field = rng.choice([-1.0, 1.0], len(edges)), np.zeros(sites)
    if change == "field":
        field[3] = sites - 2
    elif change == "strong field":
        field[3] = sites - 1
    elif change == "strong bond":
        couplings[5] = sites
    elif change == "zero":
        couplings[5] = 0.0
    elif change == "parallel":
        edges[5] = edges[6, ::-1]
    elif change == "ferromagnet":
        couplings[:] = 1.0
    elif change == "few bonds at a site":
        keep = (edges != 7).all(axis=1) | (edges < 2).any(axis=1)
        edges, couplings = edges[keep], couplings[keep]
    return ss.Ising(ss.Graph(sites, edges), couplings, field)


@pytest.mark.parametrize(
    "change",
    ["", "field", "strong field", "strong bond", "zero", "parallel", "ferromagnet", "few bonds at a site"],
)
def test_dense_problems_are_left_only_where_no_rule_applies(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = dense(200, change)
    assert fixing._is_dense_and_stays(model) == (change in ("", "field"))
    reduced = reduce(model)
    monkeypatch.setattr(fixing, "_is_dense_and_stays", lambda _: False)
    other = reduce(model)
    assert reduced.counts == other.counts
    assert reduced.offset_energy == other.offset_energy
    assert [part is model for part in reduced.parts] == [part is model for part in other.parts]
    assert [p.content_sha256() for p in reduced.parts] == [p.content_sha256() for p in other.parts]
    ones = [np.ones(part.sites, np.int8) for part in reduced.parts]
    assert np.array_equal(reduced.undo(ones), other.undo(ones))


def test_sites_without_bonds_follow_their_fields() -> None:
    model = ss.Ising(ss.Graph(3), 1.0, [2.0, -1.0, 0.0])
    assert counted(model) == {"isolated": 3}
    assert reduce(model).undo([]).tolist() == [1, -1, 1]


def test_chains_are_solved_from_their_ends() -> None:
    assert counted(ss.Ising(ss.Graph(4, [(0, 1), (1, 2), (2, 3)]), [1.0, -2.0, 1.5], [0.0, 0.3, 0.0, -9.0])) == {
        "chains": 4
    }


def frustrated(extra: list[tuple[int, int]], couplings: list[float], **others: object) -> ss.Ising:
    """Five sites joined by antiferromagnetic bonds, of which no rule removes any, and further bonds."""
    ends = np.concatenate([COMPLETE, np.reshape(extra, (-1, 2)).astype(int)])
    field = np.zeros(ends.max() + 1)
    field[SIZE:] = others.get("field", 0.0)
    return ss.Ising(ss.Graph(len(field), ends), np.concatenate([-np.ones(len(COMPLETE)), couplings]), field)


def test_each_rule_alone() -> None:
    assert counted(frustrated([], [])) == {"components": 1}
    assert counted(frustrated([(0, 5)], [0.5])) == {"chains": 1, "components": 1}
    assert counted(frustrated([(0, 5), (1, 5)], [3.0, 2.0])) == {"series": 1, "components": 1}
    assert counted(frustrated([(0, 5), (1, 5)], [1.0, 1.0], field=1.0)) == {"series": 1, "components": 1}
    three = frustrated([(0, 5), (1, 5), (2, 5)], [1.0, 1.0, 1.0])
    assert counted(three) == {"stars": 1, "components": 1}
    assert counted(three, stars=False) == {"components": 1}
    fields = [(k, 5) for k in range(4)]
    assert counted(frustrated(fields, [1.0, 1.0, 1.0, -1.0], field=-4.0)) == {"persistent": 1, "components": 1}
    assert counted(frustrated(fields, [0.5, 0.125, 0.125, -0.125], field=0.125)) == {"joined": 1, "components": 1}


def test_a_series_in_a_field_becomes_half_a_coupling_and_half_fields() -> None:
    part = reduce(frustrated([(0, 5), (1, 5)], [1.0, 1.0], field=1.0)).parts[0]
    assert part.quantum == 0.5
    assert part.fields[0].tolist() == [0.5, 0.5, 0.0, 0.0, 0.0]
    assert sorted(part.couplings[0].tolist()) == [-1.0] * 9 + [-0.5]


def test_parallel_bonds_are_merged_and_may_cancel() -> None:
    part = reduce(frustrated([(0, 1), (1, 0)], [0.25, 0.25])).parts[0]
    assert part.bonds == len(COMPLETE)
    assert sorted(part.couplings[0].tolist()) == [-1.0] * 9 + [-0.5]
    cancelled = ss.Ising(ss.Graph(2, [(0, 1), (0, 1)]), [1.0, -1.0], [1.0, -1.0])
    assert counted(cancelled) == {"isolated": 2}


def test_parts_stand_alone() -> None:
    twice = np.concatenate([2 * COMPLETE, 2 * COMPLETE + 1])
    reduced = checked(ss.Ising(ss.Graph(2 * SIZE, twice), -1.0))
    assert [sites.tolist() for sites in reduced.sites] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_what_is_not_frustrated_is_solved() -> None:
    signs = np.random.default_rng(4).choice([-1.0, 1.0], 16)
    lattice = ss.square(4)
    gauged = signs[lattice.edges()].prod(axis=1)
    for field in (0.0, 0.1 * signs, -0.1 * signs):
        assert counted(ss.Ising(lattice, gauged, field)) == {"unfrustrated": 16}


def test_a_cut_fixes_what_single_sites_do_not() -> None:
    """A square of bonds 1 in fields 0.75: no site is sure of itself, but all lowest states have all spins up."""
    lattice, field = ss.square(4), np.full(16, 0.75)
    field[5] = -0.5
    assert counted(ss.Ising(lattice, 1.0, field)) == {"persistent": 16}


def test_cuts_prove_what_all_optima_have() -> None:
    rng, proven = np.random.default_rng(5), 0
    for _ in range(300):
        model = problem(rng, 10)
        links, _ = fixing._links(model)
        spins, of_all = fixing._in_all_optima(links), energies(model)
        optima = states(model.sites)[:, of_all == of_all.min()]
        known = spins != 0
        proven += int(known.sum())
        assert (optima[known] == spins[known, None]).all()
    assert proven > 200


def test_sums_at_the_limit_of_exactness_stay_exact() -> None:
    """Half quanta of such values would not be exact: the star that needs them stays, another one does not."""
    big = 2.0**50
    model = frustrated([(0, 5), (1, 5)], [1.0, 1.0], field=1.0)
    couplings = np.array(model.couplings[0])
    couplings[: len(COMPLETE)] -= big / 4
    stays = ss.Ising(model.graph, couplings, model.fields[0])
    assert stays.quantum == 1
    assert counted(stays) == {"components": 1}
    couplings[-2:] = 2.0
    field = 2 * model.fields[0]
    field[0] = 1.0
    assert counted(ss.Ising(model.graph, couplings, field)) == {"series": 1, "components": 1}


def test_several_samples_are_refused() -> None:
    with pytest.raises(ss.InputError, match="2 samples: give one"):
        reduce(ss.EdwardsAnderson(ss.square(4), samples=2))
