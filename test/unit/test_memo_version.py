"""The cost model's version: answers for a frozen machine are those of this version, or the number was not raised."""

from __future__ import annotations

import hashlib

from search_support import with_limits

from morello_mlir.memo.version import COST_MODEL
from morello_mlir.search.schedule import to_text
from morello_mlir.search.solve import Search
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import Cache, Costs, LineCost, Target

#: Every number written out: a change of a real target is in its fingerprint and must not be seen here.
FROZEN = Target(
    name="frozen",
    summary="a machine that never changes",
    vector_bytes=32,
    registers=16,
    l1=Cache(lines=64, sets=16, steps=8),
    l2=Cache(lines=256, sets=64, steps=8),
    l3_bytes=1 << 14,
    pack_rows=(4, 6),
    pack_vectors=(2,),
    costs=Costs(
        l2_to_l1=LineCost(0.25, 0.75, 3.5, packed=0.125),
        l2_to_l1_out=LineCost(0.25, 1.0),
        l2_to_l1_across=LineCost(0.5, 0.5, 2.0),
        gl_to_l2=LineCost(0.75, 1.0, packed=0.5),
        gl_to_l2_out=LineCost(0.75, 2.5),
        far_to_l2=LineCost(5.0, 8.0, packed=4.0),
        far_to_l2_out=LineCost(5.5, 9.0),
        stream_out=LineCost(5.5, 5.5, row=3.0, lone=12.0),
        pack_copy=LineCost(6.0, 6.0, 3.0),
        pack_transpose=LineCost(10.0, 10.0, 8.5),
        out_vector=1.75,
        out_masked=2.0,
        call=4.0,
        kernel_scale=1.0625,
        unaligned=1.25,
        horizontal=6.0,
        scalar_fma=4.0,
        burst_line=2.0,
        burst_rows=4,
        lone_line=1.0,
        dot_line=0.5,
        asked_line=0.25,
        unasked_line=0.75,
        pack_away=5.0,
    ),
    kernel_table={(1, 1): 4.0, (6, 2): 6.0},
)

SPECS = (
    matmul_spec(7, 30, 24),
    matmul_spec(32, 48, 64),
    matmul_spec(64, 64, 33, rhs="col_major"),
    matmul_spec(24, 9, 16, lhs="col_major", dtype="f64"),
    with_limits(matmul_spec(12, 16, 16, b=2, accumulate=True), L1=40),
)

#: Of version COST_MODEL. When this fails, raise COST_MODEL in memo/version.py, rebuild the shipped memos and put the
#: new digest here.
DIGEST = {10: "259a5a3a0f5857dc"}


def test_answers_of_the_frozen_machine_belong_to_this_version():
    digest = hashlib.sha256()
    for spec in SPECS:
        found = Search(FROZEN).solve(spec)
        digest.update(f"{spec} {found.cost}\n{to_text(found.schedule)}\n".encode())
    assert {COST_MODEL: digest.hexdigest()[:16]} == DIGEST
