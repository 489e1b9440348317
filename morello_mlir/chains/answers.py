"""Checking what a memo has of goals that are kept as a whole."""

from __future__ import annotations

from ..errors import MorelloError
from ..memo.answers import Answer, Answers
from ..memo.store import Store
from ..nests import NestSpec, is_nest
from ..search import schedule
from ..spec import Spec
from .schedule import has_hole, parse
from .spec import ChainSpec, is_chain


def check_answers(store: Store) -> int:
    """Drops the answers that are damaged or cannot be read; returns how many are left."""
    answers, sound = Answers(store), 0
    for answer in list(answers.rows()):
        try:
            if _has_holes(answer):
                raise MorelloError("its schedule has holes")
            sound += 1
        except MorelloError as error:
            answers.drop(answer.space, answer.spec, str(error))
    return sound


def _has_holes(answer: Answer) -> bool:
    """Raises MorelloError where the goal or the schedule cannot be read."""
    if is_chain(answer.spec):
        ChainSpec.parse(answer.spec)
        return has_hole(parse(answer.schedule))
    if is_nest(answer.spec):
        NestSpec.parse(answer.spec)
    else:
        Spec.parse(answer.spec)
    return schedule.has_hole(schedule.parse(answer.schedule))
