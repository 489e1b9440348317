"""Targets by name and by CPU; what the host says of itself, in all the ways in which it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from morello_mlir.errors import InputError
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import (
    CPUS,
    TARGETS,
    cpu_of,
    cpu_target,
    exact,
    get_target,
    missing_features,
    uncalibrated,
    widest,
)
from morello_mlir.targets.geometry import CLASSES, class_of
from morello_mlir.targets.host import CacheSize, Host, read_host
from morello_mlir.targets.zen5 import ZEN5

AVX512_FLAGS = "avx2 fma f16c bmi2 avx512f avx512vl avx512bw avx512dq avx512cd"


def _host(tmp_path: Path, cpuinfo: str | None, caches: dict[str, dict[str, str]]) -> Host:
    file = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        file.write_text(cpuinfo)
    folder = tmp_path / "cache"
    for index, entries in caches.items():
        (folder / index).mkdir(parents=True)
        for name, value in entries.items():
            (folder / index / name).write_text(value + "\n")
    return read_host(file, folder)


def _cache(level: int, kind: str, size: str, sets: str = "64") -> dict[str, str]:
    return {"level": str(level), "type": kind, "size": size, "number_of_sets": sets}


def test_a_host_as_linux_describes_it(tmp_path: Path) -> None:
    text = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nstepping\t: 2\nmodel name\t: Xeon\n"
    text += f"flags\t\t: {AVX512_FLAGS}\n\nvendor_id\t: other\n"
    caches = {
        "index0": _cache(1, "Data", "48K"),
        "index1": _cache(1, "Instruction", "32K"),
        "index2": _cache(2, "Unified", "2048K", "2048"),
        "index3": _cache(3, "Unified", "32M", "32768"),
    }
    host = _host(tmp_path, text, caches)
    assert host.caches == {
        1: CacheSize(48 << 10, 64),
        2: CacheSize(2 << 20, 2048),
        3: CacheSize(32 << 20, 32768),
    }
    assert host.name == "Xeon"
    assert host.machine_key.endswith("genuineintel-6-207-2_l1=48k_l2=2048k_l3=32768k")
    assert widest(host) is TARGETS["avx512"]


@pytest.mark.parametrize(
    "caches",
    [
        {"index0": {}},
        {"index0": _cache(1, "Data", "many")},
        {"index0": _cache(1, "Data", "0K")},
        {"index0": _cache(1, "Data", "-4K")},
        {"index0": _cache(9, "Unified", "48K")},
        {"index0": _cache(1, "Data", "64M")},
    ],
)
def test_what_is_not_believable_is_not_there(
    tmp_path: Path, caches: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: -1)
    assert _host(tmp_path, "", caches).caches == {}


def test_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown)
    host = _host(tmp_path, None, {})
    assert (host.flags, host.caches, host.name) == (frozenset(), {}, "")
    assert "unknown-unknown-unknown-unknown" in host.machine_key
    assert not missing_features(TARGETS["avx512"], host), "a host that does not say is not refused"


def test_sizes_come_from_sysconf_where_there_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"SC_LEVEL1_DCACHE_SIZE": 32 << 10, "SC_LEVEL2_CACHE_SIZE": 1 << 20, "SC_LEVEL3_CACHE_SIZE": 0}
    monkeypatch.setattr("os.sysconf", sizes.__getitem__)
    assert _host(tmp_path, "", {}).caches == {1: CacheSize(32 << 10), 2: CacheSize(1 << 20)}


def test_the_widest_target_that_runs(tmp_path: Path) -> None:
    assert widest(_host(tmp_path, "flags : avx2 fma f16c bmi2", {})) is TARGETS["avx2"]
    (tmp_path / "more").mkdir()
    assert widest(_host(tmp_path / "more", "flags : sse2", {})) is TARGETS["avx2"]


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(
        InputError, match=r"unknown target 'z80' \(have host, host-exact, avx2, avx512, and CPUs: haswell, .*znver4"
    ):
        get_target("z80")


@pytest.mark.parametrize("name", CPUS)
def test_every_cpu_makes_a_sound_target(name: str) -> None:
    target = get_target(name)
    base = TARGETS[CPUS[name].base]
    assert target.cpu == name
    assert target.name == base.name
    assert (target.vector_bytes, target.registers, target.features) == (
        base.vector_bytes,
        base.registers,
        base.features,
    )
    for cache in (target.l1, target.l2):
        assert cache.sets & (cache.sets - 1) == 0, "sets are a power of two"
        assert cache.lines >= cache.steps
    assert target.limits["L1"] < target.limits["L2"]


@pytest.mark.parametrize("name", CPUS)
def test_llvm_knows_every_cpu(name: str) -> None:
    """LLVM only prints a warning for a name that it does not know, and compiles for nothing in particular."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    wide = "zmm" if CPUS[name].base == "avx512" else "ymm"
    module = binding.parse_assembly(
        "define <16 x float> @f(<16 x float> %a, <16 x float> %b) {\n"
        "  %c = fmul contract <16 x float> %a, %b\n  %d = fadd contract <16 x float> %c, %b\n  ret <16 x float> %d\n}"
    )
    machine = binding.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=name, opt=2)
    assembly = machine.emit_assembly(module)
    assert wide in assembly
    assert "vfm" in assembly


def test_the_machine_that_a_target_was_fitted_on_shares_its_memo() -> None:
    assert get_target("sapphirerapids").fingerprint == TARGETS["avx512"].fingerprint
    assert get_target("znver2").fingerprint == TARGETS["avx2"].fingerprint
    assert get_target("znver4").fingerprint != TARGETS["avx512"].fingerprint


def test_a_slower_multiplier_costs_more_cycles() -> None:
    fast, slow = TARGETS["avx512"], cpu_target("tigerlake", CPUS["tigerlake"])
    assert slow.kernel_cycles[12, 2] > 1.8 * fast.kernel_cycles[12, 2]


def test_tiles_of_one_vector_where_broadcasts_compete() -> None:
    from morello_mlir.search.schedule import to_text
    from morello_mlir.search.solve import Search

    target = get_target("znver4")
    text = to_text(Search(target).solve(matmul_spec(96, 64, 96)).schedule)
    assert "tile n by 16" in text


def _with_caches(flags: str, l1: int, l2: int, identity: tuple[str, str, str, str] = ("x", "6", "1", "1")) -> Host:
    caches = {1: CacheSize(l1 << 10, 64), 2: CacheSize(l2 << 10, 2048)}
    return Host(frozenset(flags.split()), identity, "", caches)


def test_host_is_the_named_target_where_its_caches_are_alike() -> None:
    narrow = " avx512_vnni avx512_bf16 amx_tile amx_bf16 amx_int8"
    assert uncalibrated(_with_caches(AVX512_FLAGS + narrow, 48, 2048)) is TARGETS["avx512"]
    without = uncalibrated(_with_caches(AVX512_FLAGS, 48, 2048))
    assert without.fingerprint == TARGETS["avx512"].fingerprint
    assert set(without.narrow.pairs) == {"maddwd"}
    assert uncalibrated(_with_caches("avx2 fma f16c bmi2", 32, 512)) is TARGETS["avx2"]
    unknown = uncalibrated(Host(frozenset(), ("", "", "", ""), "", {}))
    assert (unknown.name, unknown.fingerprint) == ("avx512", TARGETS["avx512"].fingerprint)


@pytest.mark.parametrize(
    ("flags", "caches", "lines"),
    [
        ("avx2 fma f16c bmi2", (48, 2048), (768, 10240)),
        ("avx2 fma f16c bmi2", (64, 512), (512, 4096)),
        ("avx2 fma f16c bmi2", (32, 256), (512, 2048)),
        (AVX512_FLAGS, (32, 1024), (512, 10240)),
        (AVX512_FLAGS, (48, 1280), (768, 10240)),
        (AVX512_FLAGS, (48, 3072), (768, 20480)),
        (AVX512_FLAGS, (32, 4096), (512, 10240)),
    ],
)
def test_host_plans_with_the_largest_class_of_caches_that_it_has(
    flags: str, caches: tuple[int, int], lines: tuple[int, int]
) -> None:
    target = uncalibrated(_with_caches(flags, *caches))
    assert (target.l1.lines, target.l2.lines) == lines


@pytest.mark.parametrize("caches", [(24, 1024), (48, 512)])
def test_caches_below_every_class_are_planned_with_as_they_are(caches: tuple[int, int]) -> None:
    host = _with_caches(AVX512_FLAGS, *caches)
    assert uncalibrated(host) == exact(host)
    assert uncalibrated(host).l1.lines == caches[0] * 16


def test_exact_caches_can_be_asked_for() -> None:
    target = exact(_with_caches(AVX512_FLAGS, 48, 1280))
    assert (target.l1.lines, target.l2.lines, target.l2.sets) == (768, 12800, 2048)
    assert exact(_with_caches(AVX512_FLAGS, 48, 2048)).fingerprint == TARGETS["avx512"].fingerprint
    assert get_target("host-exact").name == get_target("host").name


@pytest.mark.parametrize("name", CPUS)
def test_a_cpu_by_name_is_planned_for_as_a_host_of_its_kind(name: str) -> None:
    """So that one memo answers both; but for CPUs that no host is told to be."""
    cpu = CPUS[name]
    flags = AVX512_FLAGS if cpu.base == "avx512" else "avx2 fma f16c bmi2"
    identity = {"znver4": ("AuthenticAMD", "25", "97", "2"), "znver5": ("AuthenticAMD", "26", "2", "1")}
    host = uncalibrated(_with_caches(flags, cpu.l1, cpu.l2, identity.get(name, ("GenuineIntel", "6", "1", "1"))))
    by_name = get_target(name)
    assert host.l1 == by_name.l1
    assert host.l2.lines == by_name.l2.lines
    if cpu.fma_per_cycle == host.costs.fma_per_cycle and class_of(cpu.base, cpu.l1, cpu.l2):
        assert host.fingerprint == by_name.fingerprint


def test_classes_go_from_small_to_large() -> None:
    for name, classes in CLASSES.items():
        planned = [g.of(TARGETS[name]) for g in classes]
        limits = [(t.l1.lines, t.l2.lines) for t in planned]
        assert limits == sorted(limits)
        assert len({t.fingerprint for t in planned}) == len(classes)
        assert TARGETS[name].fingerprint in {t.fingerprint for t in planned}


def test_zen_4_has_kernels_of_its_own() -> None:
    target = uncalibrated(_with_caches(AVX512_FLAGS, 32, 1024, ("AuthenticAMD", "25", "97", "2")))
    assert target.pack_vectors == get_target("znver4").pack_vectors
    assert target.cpu == "", "code is for the host itself"


ZEN5_FLAGS = AVX512_FLAGS + " avx512_vnni avx512_bf16"


def test_a_measured_cpu_has_its_own_costs_by_name_and_as_host() -> None:
    by_name = get_target("znver5")
    assert (by_name.costs, by_name.kernel_table, by_name.streams) == (ZEN5.costs, ZEN5.kernel_table, ZEN5.streams)
    host = uncalibrated(_with_caches(ZEN5_FLAGS, 48, 1024, ("AuthenticAMD", "26", "2", "1")))
    assert (host.name, host.cpu) == ("avx512", ""), "code is for the host itself"
    assert (host.fingerprint, host.narrow_fingerprint) == (by_name.fingerprint, by_name.narrow_fingerprint)
    assert host.streams == ZEN5.streams
    assert not host.narrow.tiles


def test_a_measured_cpu_with_other_caches_keeps_its_costs() -> None:
    host = uncalibrated(_with_caches(AVX512_FLAGS, 48, 4096, ("AuthenticAMD", "26", "2", "1")))
    assert host.costs == ZEN5.costs
    assert host.l2.lines == 20480
    assert set(host.narrow.pairs) == {"maddwd"}, "what the system does not offer is not used"


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        (("AuthenticAMD", "26", "2", "1"), "znver5"),
        (("AuthenticAMD", "26", "68", "0"), "znver5"),
        (("AuthenticAMD", "26", "36", "0"), None),
        (("AuthenticAMD", "26", "", ""), None),
        (("AuthenticAMD", "25", "97", "2"), "znver4"),
        (("GenuineIntel", "6", "207", "2"), None),
        (("GenuineIntel", "26", "2", "1"), None),
        (("", "", "", ""), None),
    ],
)
def test_a_host_knows_its_cpu(identity: tuple[str, str, str, str], expected: str | None) -> None:
    found = cpu_of(_with_caches(AVX512_FLAGS, 48, 1024, identity))
    assert found is (CPUS[expected] if expected else None)


def test_a_cpu_without_the_instructions_of_its_base_is_none() -> None:
    """A hypervisor may hide them."""
    host = _with_caches("avx2 fma f16c bmi2", 48, 1024, ("AuthenticAMD", "26", "2", "1"))
    assert cpu_of(host) is None
    assert uncalibrated(host).costs == TARGETS["avx2"].costs
