"""Calibration without a clock: recipes, features, the fit, ranking, and the file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morello_mlir.calibration.calibrate import smoothed
from morello_mlir.calibration.features import NAMES, FeatureCounter, get, put
from morello_mlir.calibration.fit import Design, fit, fit_coefficients, non_negative_least_squares, predict
from morello_mlir.calibration.measure import Measured, SpecMeasurements
from morello_mlir.calibration.ranking import ranks, regret, spearman
from morello_mlir.calibration.recipe import Block, Pack, cheapest, text
from morello_mlir.calibration.sampler import random_samples, register_tiles
from morello_mlir.calibration.threads import measure_threads
from morello_mlir.search.schedule import Kernel, Move, walk
from morello_mlir.search.solve import Search
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import TARGETS, available_cores, get_target
from morello_mlir.targets import calibration as files
from morello_mlir.targets.calibration import Calibration

TARGET = TARGETS["avx512"]
AVX2 = TARGETS["avx2"]
SPEC = matmul_spec(96, 130, 192).canonical()


# ---------------------------------------------------------------- recipes and samples


def test_a_recipe_is_priced_as_the_search_prices_its_schedule() -> None:
    search = Search(TARGET)
    for sample in random_samples(SPEC, TARGET, 5, seed=3):
        found = cheapest(SPEC, sample.recipe, TARGET)
        assert found is not None
        schedule, cost = found
        assert schedule == sample.schedule
        assert cost == search.price(SPEC, schedule)
        assert cost >= search.solve(SPEC).cost, "nothing is cheaper than the optimum"


def test_a_recipe_keeps_its_blocks_and_packs() -> None:
    found = cheapest(SPEC, (Block("k", 64), Pack(1, 32), Block("m", 12), Block("n", 32)), TARGET)
    assert found is not None
    nodes = list(walk(found[0]))
    packs = [n for n in nodes if isinstance(n, Move) and n.layout]
    assert {p.layout for p in packs} == {"[b, n/32, k, n%32]"}
    assert all(n.name == "broadcast_fma" for n in nodes if isinstance(n, Kernel))


def test_a_recipe_that_spills_has_no_schedule() -> None:
    assert cheapest(SPEC, (Block("m", 30), Block("n", 32)), TARGET) is None


def test_samples_are_the_same_every_time_and_all_different() -> None:
    first, second = (random_samples(SPEC, TARGET, 5, seed=7) for _ in range(2))
    assert first == second
    assert len({s.schedule for s in first}) == 5
    assert first != random_samples(SPEC, TARGET, 5, seed=8)
    assert "B" in " ".join(text(s.recipe) for s in first)


def test_sampled_register_tiles_fit() -> None:
    for name in TARGETS:
        assert not any(TARGETS[name].spills(m, v) for m, v in register_tiles(TARGETS[name]))


# ---------------------------------------------------------------- features


def test_features_times_coefficients_is_the_price() -> None:
    count, search = FeatureCounter(TARGET), Search(TARGET)
    for sample in random_samples(SPEC, TARGET, 4, seed=1):
        predicted = count(SPEC, sample.schedule) @ get(TARGET.costs)
        assert predicted == pytest.approx(search.price(SPEC, sample.schedule) / 1000, rel=1e-3)


def test_coefficients_go_in_and_out() -> None:
    vector = np.arange(1.0, len(NAMES) + 1)
    costs = put(TARGET.costs, vector)
    assert get(costs).tolist() == vector.tolist()
    assert costs.l2_to_l1.conflict_rows == TARGET.costs.l2_to_l1.conflict_rows
    assert put(TARGET.costs, get(TARGET.costs)) == TARGET.costs


# ---------------------------------------------------------------- the fit


@given(st.integers(0, 10_000))
def test_least_squares_is_not_negative_and_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(12, 5)), rng.normal(size=12)
    x = non_negative_least_squares(a, b)
    gradient = a.T @ (b - a @ x)
    assert (x >= 0).all()
    assert (gradient <= 1e-7).all(), "no direction of growth helps"
    assert np.allclose(gradient[x > 0], 0, atol=1e-7)


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_the_fit_recovers_known_coefficients(seed: int) -> None:
    """From times that a known model made, whatever the offsets of the Specs, without a prior to hold it back."""
    rng = np.random.default_rng(seed)
    count, specs = 160, 4
    features = rng.uniform(1, 100, (count, len(NAMES)))
    truth = rng.uniform(0.5, 5, len(NAMES))
    for i, (name, part) in enumerate(NAMES):
        if part in ("long_rows", "short_rows"):
            less = {"long_rows": "packed", "short_rows": "long_rows"}[part]
            truth[i] = truth[NAMES.index((name, less))] + rng.uniform(0, 3)
    spec = np.arange(count) % specs
    cycles = features @ truth
    design = Design(features, cycles, spec, np.full(count, float(cycles.mean())))
    found = fit_coefficients(design, truth * rng.uniform(0.5, 2, len(truth)), prior_weight=1e-6)
    assert found == pytest.approx(truth, rel=1e-2)


def test_long_rows_never_cost_more_than_short_ones() -> None:
    """Even where the measurements say so."""
    rng = np.random.default_rng(0)
    features = rng.uniform(1, 10, (200, len(NAMES)))
    truth = get(TARGET.costs).copy()
    truth[NAMES.index(("gl_to_l2", "long_rows"))] = 9.0
    truth[NAMES.index(("gl_to_l2", "short_rows"))] = 1.0
    cycles = features @ truth
    found = fit_coefficients(Design(features, cycles, np.zeros(200, int), cycles), get(TARGET.costs), 1e-6)
    long_rows, short_rows = (found[NAMES.index(("gl_to_l2", p))] for p in ("long_rows", "short_rows"))
    assert 0 <= long_rows <= short_rows + 1e-9


def test_what_was_not_measured_stays() -> None:
    features = np.zeros((20, len(NAMES)))
    features[:, NAMES.index(("kernel_scale", ""))] = np.arange(1, 21) * 100.0
    cycles = features.sum(1) * 1.3
    start = get(TARGET.costs)
    found = fit_coefficients(Design(features, cycles, np.zeros(20, int), cycles), start)
    others = [i for i, n in enumerate(NAMES) if n != ("kernel_scale", "")]
    assert found[others] == pytest.approx(start[others])


def _fake_measurements(truth_scale: float) -> tuple[list[SpecMeasurements], np.ndarray]:
    """Times that the model itself gives with dearer packing."""
    packing = replace(TARGET.costs.pack_copy, long_rows=truth_scale, short_rows=truth_scale)
    costs = replace(TARGET.costs, pack_copy=packing)
    truth = replace(TARGET, costs=costs)
    out = []
    for spec in (SPEC, matmul_spec(192, 64, 192).canonical()):
        samples = random_samples(spec, TARGET, 10, seed=2)
        timed = []
        for s in samples:
            found = cheapest(spec, s.recipe, truth)
            assert found is not None
            timed.append(Measured(s, found[1] / 1000))
        out.append(SpecMeasurements(spec, samples[0].schedule, tuple(timed)))
    return out, get(costs)


def test_fitting_schedules_finds_what_packing_costs() -> None:
    measurements, _ = _fake_measurements(20.0)
    before = predict(measurements[0], TARGET)
    fitted = fit(measurements, TARGET, prior_weight=1e-3)
    after = predict(measurements[0], fitted)
    assert fitted.costs.pack_copy.long_rows == pytest.approx(20.0, rel=0.1)
    assert spearman(after.predicted, after.measured) > max(0.99, spearman(before.predicted, before.measured))


def test_a_smoothed_table_has_no_noise_among_large_tiles() -> None:
    rng = np.random.default_rng(1)
    tiles = [(m, v) for m in range(1, 29) for v in range(1, 13) if not TARGET.spills(m, v)]
    table = {(m, v): max(m * v / 2 + 0.2 + rng.normal(0, 0.004) * m * v, 4.0) for m, v in tiles}
    out = smoothed(table, TARGET)
    large = {t: out[t] - t[0] * t[1] / 2 for t in tiles if t[0] * t[1] >= 20}
    assert max(large.values()) - min(large.values()) < 0.02
    assert all(out[m, v] >= m * v / 2 for m, v in tiles)
    assert out[1, 1] == pytest.approx(4.0, abs=0.1)


# ---------------------------------------------------------------- ranking


def test_ranks_and_correlation() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
    assert spearman(np.array([1.0, 2, 3]), np.array([10.0, 20, 90])) == pytest.approx(1)
    assert spearman(np.array([1.0, 2, 3]), np.array([3.0, 2, 1])) == pytest.approx(-1)
    assert np.isnan(spearman(np.array([1.0, 1]), np.array([1.0, 2])))
    assert regret(103.0, np.array([100.0, 110.0])) == pytest.approx(0.03)


# ---------------------------------------------------------------- the file


def _calibration(machine: str = "m") -> Calibration:
    return Calibration(
        machine, "avx512", TARGET.fingerprint, TARGET.costs, {(12, 2): 12.5}, 20480, {"correlation": 0.9}
    )


def test_a_calibration_survives_the_file() -> None:
    made = _calibration()
    assert Calibration.from_json(made.to_json()) == made


def test_a_stored_calibration_is_what_host_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from morello_mlir.targets import exact, this_host, uncalibrated

    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    base = exact(this_host())
    assert get_target("host") == uncalibrated(this_host())
    costs = replace(base.costs, call=77.0)
    made = Calibration(this_host().machine_key, base.name, base.fingerprint, costs, {}, base.l2.lines)
    path = files.path_of(this_host().machine_key, base.name)
    assert path is not None
    files.store(made, path)
    assert get_target("host").costs.call == 77.0
    assert get_target("host").fingerprint != base.fingerprint
    assert get_target(base.name).costs == TARGETS[base.name].costs, "a target by name is the shipped one"
    monkeypatch.setenv(files.VARIABLE, "off")
    assert get_target("host") == uncalibrated(this_host())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: "no JSON {", "Expecting value"),
        (lambda d: json.dumps([1]), "not a calibration"),
        (lambda d: json.dumps({**d, "format": 99}), "format 99"),
        (lambda d: json.dumps({**d, "costs": {**d["costs"], "call": -1}}), "-1 is not a cost"),
        (lambda d: json.dumps({**d, "costs": {**d["costs"], "call": float("nan")}}), "nan is not a cost"),
        (lambda d: json.dumps({**d, "costs": {"call": 1.0}}), "missing or unknown"),
        (lambda d: json.dumps({**d, "kernel_table": {"axb": 1.0}}), "invalid literal"),
        (lambda d: json.dumps({**d, "l2_lines": 0}), "l2_lines is 0"),
        (lambda d: json.dumps({**d, "machine": "other"}), "it is of other"),
        (lambda d: json.dumps({**d, "base_fingerprint": "0"}), "run morello calibrate again"),
    ],
)
def test_a_file_that_does_not_fit_is_ignored_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change, why: str
) -> None:
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    path = files.path_of("m", "avx512")
    assert path is not None
    path.write_text(change(json.loads(_calibration().to_json())))
    with pytest.warns(UserWarning, match="is not used: .*" + why):
        assert files.load("m", TARGET) is None


def test_no_calibration_is_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(files.VARIABLE, str(tmp_path / "nowhere"))
    assert files.load("m", TARGET) is None


def test_threads_are_measured() -> None:
    """A fork costs something, and two threads read no faster than twice one, on any machine; alone nothing is known."""
    made = measure_threads(replace(AVX2, l3_bytes=1 << 16), AVX2.costs, rounds=1)
    if available_cores() < 2:
        assert made == AVX2.costs
    else:
        assert made.fork_join >= 2000 and 1 <= made.far_streams <= 2
        assert replace(made, fork_join=0, far_streams=0) == replace(AVX2.costs, fork_join=0, far_streams=0)
