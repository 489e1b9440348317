"""Calibrations on disk: what `morello calibrate` measured, as JSON, one file for each machine and target.

A calibration is used only where everything it depends on is as it was: the CPU, its caches, the target that it
refines, and the version of the format. Whatever is unreadable or out of place is ignored, with one warning.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from .base import Cache, Costs, LineCost, Target

#: Changes when the meaning of a coefficient or of the file does.
FORMAT = 4
#: `off` ignores calibrations; a path is the folder that holds them.
VARIABLE = "MORELLO_CALIBRATION"


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    machine: key of the machine (`Host.machine_key`). base: name of the target that it refines, and `base_fingerprint`
    what that was like. l2_lines: lines of L2 that schedules may count on. report: figures about the fit, for people.
    """

    machine: str
    base: str
    base_fingerprint: str
    costs: Costs
    kernel_table: Mapping[tuple[int, int], float]
    l2_lines: int
    report: Mapping[str, Any] = field(default_factory=dict)

    def applied(self, base: Target) -> Target:
        """`base` with what was measured. The name stays: code is generated for the same instructions."""
        l2 = Cache(self.l2_lines, base.l2.sets, base.l2.steps)
        return replace(base, costs=self.costs, kernel_table=dict(self.kernel_table), l2=l2)

    def to_json(self) -> str:
        """The file's text."""
        table = {f"{m}x{v}": cycles for (m, v), cycles in sorted(self.kernel_table.items())}
        data = {
            "format": FORMAT,
            "machine": self.machine,
            "base": self.base,
            "base_fingerprint": self.base_fingerprint,
            "l2_lines": self.l2_lines,
            "costs": asdict(self.costs),
            "kernel_table": table,
            "report": dict(self.report),
        }
        return json.dumps(data, indent=2) + "\n"

    @staticmethod
    def from_json(text: str) -> Calibration:
        """Reads what `to_json` wrote. Raises ValueError saying what is wrong."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']}, not {FORMAT}")
            table = {_tile(key): _number(cycles) for key, cycles in data["kernel_table"].items()}
            l2_lines = int(_number(data["l2_lines"]))
            costs, report = _costs(data["costs"]), dict(data.get("report", {}))
            names = [str(data[key]) for key in ("machine", "base", "base_fingerprint")]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a calibration ({type(error).__name__}: {error})") from error
        if l2_lines < 1:
            raise ValueError(f"l2_lines is {l2_lines}")
        return Calibration(names[0], names[1], names[2], costs, table, l2_lines, report)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise ValueError(f"{value!r} is not a cost")
    return value


def _tile(key: str) -> tuple[int, int]:
    rows, _, vectors = key.partition("x")
    return int(rows), int(vectors)


def _costs(data: Mapping[str, Any]) -> Costs:
    """Raises ValueError where a coefficient is missing, unknown or not a number."""
    wanted = {f.name: f for f in fields(Costs)}
    if set(data) != set(wanted):
        raise ValueError(f"coefficients {sorted(set(data) ^ set(wanted))} are missing or unknown")
    values: dict[str, Any] = {n: _line(v) if isinstance(v, Mapping) else _number(v) for n, v in data.items()}
    return Costs(**values)


def _line(data: Mapping[str, Any]) -> LineCost:
    if set(data) != {f.name for f in fields(LineCost)}:
        raise ValueError(f"parts {sorted(data)} of a coefficient are not those there are")
    numbers = {name: _number(value) for name, value in data.items()}
    return LineCost(**{**numbers, "conflict_rows": int(numbers["conflict_rows"])})  # type: ignore[arg-type]


# ---------------------------------------------------------------- files


def folder() -> Path | None:
    """Where calibrations are kept: `$MORELLO_CALIBRATION`, or the user's configuration folder; None for `off`."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_config_dir("morello-mlir", appauthor=False)) / "calibration"


def path_of(machine: str, base: str) -> Path | None:
    """The file of a machine and a target; None where calibrations are off."""
    directory = folder()
    return None if directory is None else directory / f"{machine}_{base}.json"


def store(calibration: Calibration, path: Path) -> None:
    """Writes the file, whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(calibration.to_json(), encoding="utf-8")
    temporary.replace(path)


def load(machine: str, base: Target) -> Calibration | None:
    """The calibration of `machine` for the target `base`, if there is one that fits."""
    path = path_of(machine, base.name)
    if path is None:
        return None
    try:
        found = Calibration.from_json(path.read_text(encoding="utf-8"))
        _check(found, machine, base)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warnings.warn(f"the calibration {path} is not used: {error}", stacklevel=3)
        return None
    return found


def _check(found: Calibration, machine: str, base: Target) -> None:
    """Raises ValueError where a calibration is not one of this machine and this target."""
    if (found.machine, found.base) != (machine, base.name):
        raise ValueError(f"it is of {found.machine}, {found.base}")
    if found.base_fingerprint != base.fingerprint:
        raise ValueError(f"it refines another version of {base.name}: run morello calibrate again")
