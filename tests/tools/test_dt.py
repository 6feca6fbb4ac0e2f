#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_dt.py DT: does the program dt print what it should? A row of a table is a run and a case. Prints TAP."""
import json
import math
import os
import subprocess
import sys
import time

DT = sys.argv[1]
MOST_THREADS = 16
LONG = 20       # seconds in which the largest worlds must be planned, also by instrumented code

# Redistributions: name, --mesh, source, target, more options, what the JSON must say. steps: kinds, in order; dims: of
# each step; other keys: equal to what stands there.
PLANS = [
    ("acceptance", "x=4,y=2", "f32[16,8,12]@y:S(0),x:S(2)", "f32[16,8,12]@x:S(1),y:S(1)", [],
     {"steps": ["all_to_all"], "ratio": 1, "peak_bytes": 2 * 16 * 8 * 12 * 4 // 8,
      "source": "f32[16,8,12]@x:S(2),y:S(0)", "target": "f32[16,8,12]@x:S(1),y:S(1)",
      "bytes": 672, "sent": 672, "lower_bound": 672, "total": 8 * 672}),
    ("placements alone", "x=4,y=2", "f32[16,8,12]@y:S(0),x:S(2)", "x:S(1),y:S(1)", [],
     {"steps": ["all_to_all"], "ratio": 1, "target": "f32[16,8,12]@x:S(1),y:S(1)"}),
    ("a star keeps the rest", "x=4,y=2", "f32[16,8]@y:S(0),x:S(1)", "x:R,*", [],
     {"steps": ["all_gather"], "dims": [["x"]], "target": "f32[16,8]@y:S(0)", "ratio": 1}),
    ("no placements are R", "x=4,y=2", "f32[16,8]@y:S(0)", "", [], {"target": "f32[16,8]", "dims": [["y"]]}),
    # All dims of a 2x2x2 mesh in one step.
    ("S0S0S0 to S1S1S1", "x=2,y=2,z=2", "f32[8,8,8]@x:S(0),y:S(0),z:S(0)", "x:S(1),y:S(1),z:S(1)", [],
     {"steps": 1, "ratio": 1, "bytes": 224}),
    ("S0S1S0 to S1S0S0", "x=2,y=2,z=2", "f32[8,8,8]@x:S(0),y:S(1),z:S(0)", "x:S(1),y:S(0),z:S(0)", [],
     {"steps": 1, "ratio": 1}),
    ("S0S1S2 to S2S1S0", "x=2,y=2,z=2", "f32[8,8,8]@x:S(0),y:S(1),z:S(2)", "x:S(2),y:S(1),z:S(0)", [],
     {"steps": 1, "ratio": 1, "dims": [["x", "z"]]}),
    ("S1S0S0 to RS0S0", "x=2,y=2,z=2", "f32[8,8,8]@x:S(1),y:S(0),z:S(0)", "y:S(0),z:S(0)", [],
     {"steps": ["all_gather"], "ratio": 1, "dims": [["x"]]}),
    ("S0S0S1 to S0S1S2", "x=2,y=2,z=2", "f32[8,8,8]@x:S(0),y:S(0),z:S(1)", "x:S(0),y:S(1),z:S(2)", [],
     {"steps": 1, "ratio": 1, "dims": [["y", "z"]]}),
    ("only the off-diagonal ranks move", "x=2,y=2", "f32[8,8]@x:S(0),y:S(1)", "x:S(1),y:S(0)", [],
     {"steps": ["permute"], "ratio": 1, "bytes": 64, "total": 2 * 64}),
    ("split order, 64 ranks", "f=8,t=8", "f32[64,3]@f:S(0),t:S(0)", "t:S(0),f:S(0)", [],
     {"steps": ["permute"], "ratio": 1, "total": 56 * 12, "dims": [["f", "t"]]}),
    ("split order, uneven", "f=8,t=8", "f32[65,3]@f:S(0),t:S(0)", "t:S(0),f:S(0)", [], {"steps": 1, "ratio": 1}),
    ("a dim of size 1", "x=4,y=1", "f32[8,8]@y:S(0)", "y:P", [], {"steps": [], "bytes": 0, "ratio": 1, "time_us": 0}),
    # Partial.
    ("PPP to R", "x=2,y=2,z=2", "f32[8,8,8]@x:P,y:P,z:P", "", [],
     {"steps": ["all_reduce"], "ratio": 1, "bytes": 2 * 7 * 8 ** 3 * 4 // 8, "dims": [["x", "y", "z"]]}),
    ("S0S0S0 to R, in order", "x=2,y=2,z=2", "f32[8,8,8]@x:S(0),y:S(0),z:S(0)", "", [],
     {"steps": ["all_gather"], "ratio": 1, "dims": [["x", "y", "z"]]}),
    ("S0S0S0 to R, in another order", "x=2,y=2,z=2", "f32[8,8,8]@z:S(0),x:S(0),y:S(0)", "", [],
     {"steps": ["all_gather"], "ratio": 1, "dims": [["x", "y", "z"]]}),
    ("PS0P to RRR", "x=2,y=2,z=2", "f32[8,8,8]@x:P,y:S(0),z:P", "", [],
     {"steps": ["reduce_scatter", "all_gather"], "ratio": 1}),
    ("S to P(avg)", "x=3", "bf16[300]@x:S(0)", "bf16[300]@x:P(avg)", [], {"steps": ["local"], "bytes": 0}),
    ("P(sum)P(avg) to RR", "x=2,y=2", "f32[8,8]@x:P(sum),y:P(avg)", "", [], {"steps": ["all_reduce"], "ratio": 1}),
    ("PP to S0S0, 10 over 6", "x=2,y=3", "f32[10]@x:P,y:P", "x:S(0),y:S(0)", [],
     {"steps": ["reduce_scatter"], "total": 5 * 10 * 4, "total_bound": 5 * 10 * 4, "bytes": 5 * 2 * 4}),
    ("sums by region, uneven", "a=3,b=2,c=3", "i32[16,120]@b:S(1),a:S(0),c:P", "b:S(1),a:S(1),c:S(1)", [],
     {"total": 20480, "total_bound": 20480}),
    ("sums by region to another mesh, uneven", "a=6,b=3", "f32[17,24]@a:S(0),b:P", "y:S(1),x:S(0)", ["--to-mesh", "x=2,y=9"],
     {"total": 4352, "total_bound": 4352}),
    ("sums by link class, wider", "a=4", "bf16[64]@a:P", "f32[64]", ["--topology=node=2,gpu=2"], {"ratio": 1}),
    ("sums by link class, narrower", "a=6,b=2", "f32[24,12]@b:S(0),a:P", "bf16[24,12]@b:S(1)",
     ["--topology=node=2,gpu=6"], {}),
    ("largest by link class, of integers", "a=8", "f32[64]@a:P(max)", "i32[64]", ["--topology=node=2,gpu=4"], {}),
    ("sums are in f32", "tp=4", "bf16[16]@tp:P", "", [], {"sums_in": ["f32"], "sums": [True]}),
    ("moves do not sum", "tp=4", "bf16[16]@tp:S(0)", "", [], {"sums_in": [None], "sums": [False]}),
    ("R to P is free", "tp=4", "f32[16]", "tp:P", [], {"bytes": 0, "ratio": 1}),
    # Two meshes.
    ("another mesh, the same ranks", "x=4,y=2", "f32[8,8]@x:S(0)", "f32[8,8]@b:S(0)", ["--to-mesh", "a=2,b=4"],
     {"steps": 1, "ratio": 1, "target_mesh": "a=2,b=4"}),
    ("without common refinement", "x=2,y=3", "f32[8,8]@x:S(0),y:S(1)", "a:S(0),b:S(1)", ["--to-mesh=a=3,b=2"],
     {"ratio": 1, "dims": [["x", "y", "a", "b"]]}),
    ("other ranks", "pp=2,tp=4", "f32[16,4]@tp:S(0)", "tp:S(0)", ["--at", "pp=0", "--to-at", "pp=1"],
     {"steps": 1, "ratio": 1, "bytes": 64, "total": 4 * 64, "dims": [["tp"]], "source_mesh": "tp=4"}),
    ("other ranks, placed otherwise", "pp=2,tp=4", "f32[16,4]@tp:S(0)", "tp:S(1)", ["--at=pp=0", "--to-at=pp=1"],
     {"steps": 1, "ratio": 1}),
    ("one stage only", "pp=2,tp=4", "f32[16,4]@tp:S(0)", "", ["--at=pp=1"],
     {"steps": ["all_gather"], "target_mesh": "tp=4", "total": 4 * 3 * 64}),
    ("from a part to all", "pp=2,tp=4", "f32[16,4]@tp:S(0)", "pp:S(0),tp:S(0)", ["--at=pp=0", "--to-mesh=pp=2,tp=4"],
     {"ratio": 1, "target_mesh": "pp=2,tp=4"}),
    ("factors go along", "pp=2,tp=4", "f32[(2 12),4]@tp:S(0.1)", "tp:S(0.1)", ["--at=pp=0", "--to-at=pp=1"],
     {"target": "f32[(2 12),4]@tp:S(0.1)", "total": 24 * 4 * 4}),
    # Worlds and sizes.
    ("3 ranks", "tp=3", "f32[13,5]@tp:S(0)", "tp:S(1)", [], {"steps": ["all_to_all"], "ratio": 1}),
    ("5 ranks", "tp=5", "f32[13,5]@tp:S(0)", "", [], {"steps": ["all_gather"], "ratio": 1}),
    ("7 ranks", "tp=7", "f32[14,7]@tp:P", "tp:S(0)", [],
     {"steps": ["reduce_scatter"], "ratio": 1, "bytes": 6 * 2 * 7 * 4}),
    ("uneven: 13 over 4", "tp=4", "f32[13,3]@tp:S(0)", "", [], {"bytes": 10 * 3 * 4, "ratio": 1}),
    ("empty pieces: 2 over 4", "tp=4", "f32[2,8]@tp:S(0)", "", [], {"bytes": 2 * 8 * 4, "ratio": 1}),
    ("no elements", "tp=4", "f32[0,8]@tp:S(0)", "tp:S(1)", [], {"bytes": 0, "total": 0, "ratio": 1}),
    ("a scalar", "tp=4", "f32[]@tp:P", "", [], {"steps": ["all_reduce"], "total": 6 * 4, "total_bound": 6 * 4}),
    ("a size to fill in", "dp,tp=4", "f32[8]@dp:S(0)", "", ["--ranks", "8"], {"source_mesh": "dp=2,tp=4", "bytes": 16}),
    ("least time", "tp=4", "f32[8]@tp:P", "", ["--least-time"], {"ratio": None}),
    ("16,384 ranks, all-gather", "dp=2048,tp=8", "bf16[65536,8192]@dp:S(0),tp:S(1)", "dp:S(0)", [],
     {"steps": ["all_gather"], "ratio": 1, "dims": [["tp"]], "bytes": 7 * 32 * 1024 * 2}),
    ("16,384 ranks, all-reduce", "dp=2048,tp=8", "bf16[65536,8192]@dp:S(0),tp:P", "dp:S(0)", [],
     {"steps": ["all_reduce"], "ratio": 1, "bytes": 2 * 7 * 32 * 8192 * 2 // 8}),
    ("16,384 ranks, two link classes", "dp=2048,tp=8", "bf16[65536,8192]@dp:P,tp:S(1)", "dp:S(0),tp:S(1)",
     ["--topology=node=2048,gpu=8"], {"steps": ["reduce_scatter"], "ratio": 1}),
]

# Rules: name, --mesh, arguments, what the JSON must say. used, moves (kinds of steps), bytes: per operand; others: how
# many alternatives; along: the mesh dims that it speaks of; why, why_not: words that stand there for some mesh dim.
A, B = "f32[64,512]", "f32[512,256]"
MINE = ["mine(x, w)", "--rule", "m n, m -> m n", "--polynomial", "x w"]
LINEAR = ["linear(x, w, b)", "--rule", "... k, n k, n? -> ... n", "--polynomial", "x w + b"]
RULES = [
    ("acceptance", "tp=8", ["matmul", f"{A}@tp:S(1)", f"{B}@tp:S(0)"],
     {"op": "matmul", "outputs": ["f32[64,256]@tp:P(sum)"], "moves": [[], []], "bytes": 0, "why": "k is split and reduced",
      "rule": "... m k, ... k n -> ... m n", "polynomial": "a b", "why_not": None}),
    ("column parallel", "dp=2,tp=4", ["matmul", f"{A}@dp:S(0)", f"{B}@tp:S(1)"],
     {"outputs": ["f32[64,256]@dp:S(0),tp:S(1)"], "moves": [[], []], "bytes": 0, "why": "n is split and stays so"}),
    ("all is R", "tp=4", ["matmul", A, B],
     {"outputs": ["f32[64,256]"], "moves": [[], []], "others": 0, "why": "all ranks do the same"}),
    ("one is P", "tp=4", ["matmul", f"{A}@tp:P", B],
     {"outputs": ["f32[64,256]@tp:P(sum)"], "bytes": 0, "why": "the value is linear in a"}),
    ("both are P", "tp=4", ["matmul", f"{A}@tp:P", f"{B}@tp:P"],
     {"why_not": "a is P(sum) and b is P(sum) in one monomial", "outputs": ["f32[64,256]@tp:P(sum)"]}),
    ("a slice is free", "tp=4", ["matmul", f"{A}@tp:S(1)", B],
     {"used": [f"{A}@tp:S(1)", f"{B}@tp:S(0)"], "moves": [[], ["local"]], "bytes": 0}),
    ("m against n", "tp=4", ["matmul", f"{A}@tp:S(0)", f"{B}@tp:S(1)"],
     {"used": [A, f"{B}@tp:S(1)"], "moves": [["all_gather"], []], "bytes": 3 * 64 * 512 * 4 // 4,
      "outputs": ["f32[64,256]@tp:S(1)"], "why_not": "a mesh dim splits one factor"}),
    ("one mesh dim moves", "dp=2,tp=4", ["matmul", f"{A}@dp:S(0),tp:S(0)", f"{B}@tp:S(1)"],
     {"used": [f"{A}@dp:S(0)", f"{B}@tp:S(1)"], "dims": [["tp"]], "along": ["dp", "tp"]}),
    ("both move", "tp=4", ["f(x, y)", "--rule", "a!, b! -> a! b!", "f32[5]@tp:S(0)", "f32[7]@tp:S(0)"],
     {"moves": [["all_gather"], ["all_gather"]], "bytes": 4 * (4 + 6), "outputs": ["f32[5,7]"], "others": 0}),
    ("through an index map", "tp=4", ["slice", "f32[13]@tp:S(0)", "dim=0", "start=2", "stop=9", "step=1"],
     {"outputs": ["f32[7]@tp:S(0)"], "moves": [[]], "pulls": ["exchange"], "bytes": 4, "rule": "a1 -> a",
      "why": "goes through an index map"}),
    ("an operand several times", "tp=4", ["cat", "f32[5,4]@tp:P", "f32[3,4]", "f32[2,4]@tp:P", "dim=0"],
     {"outputs": ["f32[10,4]@tp:P(sum)"], "bytes": 0, "polynomial": "x0 + x1 + x2, rising", "pulls": []}),
    ("a mesh dim of size 1", "dp=1,tp=4", ["matmul", f"{A}@dp:S(0)", f"{B}@dp:S(0)"],
     {"along": ["tp"], "bytes": 0, "outputs": ["f32[64,256]"]}),
    ("uneven", "tp=4", ["matmul", "f64[13,5]@tp:S(0)", "f64[5,3]"], {"outputs": ["f64[13,3]@tp:S(0)"], "bytes": 0}),
    ("empty", "tp=4", ["matmul", "f64[0,5]@tp:S(0)", "f64[5,3]"], {"outputs": ["f64[0,3]@tp:S(0)"], "bytes": 0}),
    ("a batch broadcasts", "tp=4", ["matmul", "f32[8,6,5]@tp:S(0)", "f32[5,3]"],
     {"outputs": ["f32[8,6,3]@tp:S(0)"], "bytes": 0, "why": "...[0] is split"}),
    ("a product dim", "tp=2", ["matmul", "f32[4,(2 6)]@tp:S(1.1)", "f32[12,3]"],
     {"used": ["f32[4,(2 6)]@tp:S(1.1)", "f32[(2 6),3]@tp:S(0.1)"], "outputs": ["f32[4,3]@tp:P(sum)"]}),
    ("a topology", "tp=8", ["matmul", f"{A}@tp:S(0)", f"{B}@tp:S(1)", "--topology=node=2,gpu=4"],
     {"outputs": ["f32[64,256]@tp:S(1)"]}),
    ("a size to fill in", "dp,tp=4", ["matmul", A, f"{B}@tp:S(1)", "--ranks=8"], {"mesh": "dp=2,tp=4"}),
    ("strict, and nothing moves", "tp=8", ["--strict", "matmul", f"{A}@tp:S(1)", f"{B}@tp:S(0)"], {"bytes": 0}),
    ("strict, and a slice is free", "tp=8", ["--strict", "matmul", f"{A}@tp:S(1)", B], {"bytes": 0}),
    ("16,384 ranks", "dp=2048,tp=8", ["matmul", "bf16[65536,8192]@dp:S(0)", "bf16[8192,28672]@tp:S(1)"],
     {"outputs": ["bf16[65536,28672]@dp:S(0),tp:S(1)"], "bytes": 0}),
    # Attributes.
    ("a dtype", "tp=2", ["cast", "f32[4]@tp:S(0)", "dtype=bf16"], {"outputs": ["bf16[4]@tp:S(0)"],
                                                                   "attributes": ["dtype=bf16"]}),
    ("a number added once", "tp=2", ["add_scalar", "f32[4]@tp:P", "value=2.5"],
     {"outputs": ["f32[4]@tp:P(sum)"], "bytes": 0, "why": "the number is added once"}),
    ("times a negative number", "tp=2", ["mul_scalar", "value=-2", "f32[4]@tp:P(max)"],
     {"outputs": ["f32[4]@tp:P(min)"], "polynomial": "x, falling"}),
    ("times nothing said, which is 0", "tp=2", ["mul_scalar", "f32[4]@tp:P(max)"], {"polynomial": "x"}),
    ("dims", "tp=4", ["sum", "f32[8,6]@tp:S(0)", "dims=0", "keep=true"], {"outputs": ["f32[1,6]@tp:P(sum)"], "bytes": 0}),
    ("a dim from the end", "tp=4", ["softmax", "f32[8,6]@tp:S(0)", "dim=-1"], {"outputs": ["f32[8,6]@tp:S(0)"],
                                                                              "bytes": 0}),
    ("an integer", "tp=4", ["one_hot", "i64[8]@tp:S(0)", "size=10", "dtype=f32"], {"outputs": ["f32[8,10]@tp:S(0)"]}),
    # Kinds of P.
    ("kinds that do not mix, on two mesh dims", "q=2,r=2", ["sub", "f32[6]@r:P", "f32[6]@q:P(max)"],
     {"outputs": ["f32[6]@q:P(min),r:S(0)"], "why_not": "other mesh dims", "bytes": 12}),
    ("kinds that do not mix, on one", "tp=2", ["add", "f32[6]@tp:P(max)", "f32[6]@tp:P"],
     {"used": ["f32[6]@tp:P(sum)", "f32[6]@tp:P(sum)"], "moves": [["all_reduce", "local"], []], "bytes": 24,
      "outputs": ["f32[6]@tp:P(sum)"]}),
    ("an average beside a sum", "tp=2", ["add", "f32[6]@tp:P(avg)", "f32[6]@tp:P"],
     {"used": ["f32[6]@tp:P(sum)", "f32[6]@tp:P(sum)"], "outputs": ["f32[6]@tp:P(sum)"], "bytes": 0}),
    ("of integers it is reduced", "tp=2", ["add", "i64[6]@tp:P(avg)", "i64[6]@tp:P"],
     {"moves": [["all_reduce", "local"], []], "outputs": ["i64[6]@tp:P(sum)"]}),
    # A row of one's own.
    ("one's own", "tp=2", [*MINE, "f32[4,6]@tp:S(0)", "f32[4]@tp:S(0)"],
     {"op": "mine", "outputs": ["f32[4,6]@tp:S(0)"], "moves": [[], []], "rule": "m n, m -> m n", "polynomial": "x w"}),
    ("of no polynomial", "tp=2", ["f(x)", "--rule", "a b! -> a b", "f32[4,6]@tp:S(1)"],
     {"polynomial": "none", "why_not": "the kernel wants b whole", "outputs": ["f32[4,6]@tp:S(0)"]}),
    ("P(max) of a rising one", "tp=2", ["f(x)", "--rule", "a -> a", "--polynomial", "none, rising", "f32[4]@tp:P(max)"],
     {"outputs": ["f32[4]@tp:P(max)"], "bytes": 0, "why": "the value rises with x"}),
    ("an addend that is lifted", "tp=2", [*LINEAR, "f32[4,6]@tp:S(1)", "f32[3,6]@tp:S(1)", "f32[3]"],
     {"used": ["f32[4,6]@tp:S(1)", "f32[3,6]@tp:S(1)", "f32[3]@tp:P(sum)"], "outputs": ["f32[4,3]@tp:P(sum)"],
      "bytes": 0, "why": "it is added once"}),
    ("an absent operand", "tp=2", [*LINEAR, "f32[4,6]@tp:S(1)", "f32[3,6]@tp:S(1)", "-"],
     {"used": ["f32[4,6]@tp:S(1)", "f32[3,6]@tp:S(1)", None], "moves": [[], [], []]}),
    ("one left out", "tp=2", [*LINEAR, "f32[4,6]@tp:S(1)", "f32[3,6]@tp:S(1)"],
     {"used": ["f32[4,6]@tp:S(1)", "f32[3,6]@tp:S(1)", None]}),
    ("results that are kept", "tp=2", ["norm(x)", "--rule", "a h! -> a h! | a", "f32[4,6]@tp:S(0)"],
     {"outputs": ["f32[4,6]@tp:S(0)"], "kept": ["f32[4]@tp:S(0)"]}),
    ("dtypes of one's own", "tp=2", ["at(w, i)", "--rule", "v h, n -> n h", "--polynomial", "w", "--dtypes", "fi->f",
                                     "f32[8,4]@tp:S(1)", "i64[3]"], {"outputs": ["f32[3,4]@tp:S(1)"], "bytes": 0}),
]

M = ["--mesh", "x=4,y=2"]
T = ["rule", "--mesh", "tp=4"]
# Refusals: name, arguments, exit status, what stderr must say, environment.
REFUSALS = [
    ("no command", [], 2, "expected a command", {}),
    ("an unknown command", ["fly"], 2, 'unknown command "fly"', {}),
    ("an unknown option for no command", ["--fly"], 2, 'unknown option "--fly"', {}),
    ("help for an unknown command", ["help", "fly"], 2, 'unknown command "fly"', {}),
    ("a command of later", ["plan", "--cluster", "node=2", "./program"], 2, "not in this version", {}),
    ("a run of nothing", ["run", "-n", "8"], 2, "expected a program", {}),
    ("a run of no program", ["run", "-n", "8", "./no-such-program"], 1, "No such file", {}),
    ("a run with an unknown option", ["run", "-x", "./program"], 2, "unknown option -x", {}),
    ("and another", ["plan"], 2, "not in this version", {}),
    ("help for one", ["help", "plan"], 2, "not in this version", {}),
    ("an unknown option", ["info", "--fly"], 2, "unknown option --fly", {}),
    ("an unknown option with a value", ["redistribute", "--fly=1"], 2, "unknown option --fly", {}),
    ("the start of an option", ["redistribute", "--mes=x=2"], 2, "unknown option --mes", {}),
    ("a short option", ["info", "-j"], 2, "unknown option -j", {}),
    ("a value for a flag", ["info", "--json=true"], 2, "takes no value", {}),
    ("no value", ["redistribute", "f32[4]", "x:R", "--mesh"], 2, "--mesh: expected a value", {}),
    ("no mesh", ["redistribute", "f32[4]", "x:R"], 2, "expected --mesh", {}),
    ("no target", ["redistribute", *M, "f32[4]"], 2, "expected SOURCE TARGET", {}),
    ("an argument too many", ["redistribute", *M, "f32[4]", "x:R", "more"], 2, 'unexpected argument "more"', {}),
    ("an argument for none", ["info", "more"], 2, 'unexpected argument "more"', {}),
    ("no number of ranks", ["redistribute", *M, "--ranks=many", "f32[4]", "x:R"], 2, "--ranks=many", {}),
    ("0 ranks", ["redistribute", *M, "--ranks=0", "f32[4]", "x:R"], 2, "--ranks=0", {}),
    ("ranks with a blank", ["redistribute", *M, "--ranks= 8", "f32[4]", "x:R"], 2, "--ranks= 8", {}),
    ("an int is too small for them", ["redistribute", *M, "--ranks=99999999999", "f32[4]", "x:R"], 2, "--ranks", {}),
    ("an unsized dim", ["redistribute", "--mesh=x,y=2", "f32[4]", "x:R"], 2, "needs --ranks", {}),
    ("a run on too many ranks", ["redistribute", "--mesh=x=1000", "--run", "f32[4]", "x:R"], 1, "at most 256", {}),
    ("a mesh in no notation", ["redistribute", "--mesh=x=4,", "f32[4]", "x:R"], 1, "column 5", {}),
    ("a mesh of size 0", ["redistribute", "--mesh=x=0", "f32[4]", "x:R"], 1, "expected a size from 1", {}),
    ("a mesh dim twice", ["redistribute", "--mesh=x=2,x=2", "f32[4]", "x:R"], 1, "twice", {}),
    ("a mesh too large", ["redistribute", "--mesh=x=65536,y=65536", "f32[4]", "x:R"], 1,
     "at most 2147483647 ranks", {}),
    ("sizes that are not the ranks", ["redistribute", *M, "--ranks=9", "f32[4]", "x:R"], 1, "product is 9", {}),
    ("a target mesh of other size", ["redistribute", *M, "--to-mesh=a=4", "f32[4]", "f32[4]"], 1, "product is 8", {}),
    ("an unknown dim in --at", ["redistribute", *M, "--at=z=0", "f32[4]", "x:R"], 1, 'no dim "z"', {}),
    ("a coordinate out of range", ["redistribute", *M, "--to-at=y=2", "f32[4]", "x:R"], 1, "from 0 to 1", {}),
    ("a spec in no notation", ["redistribute", *M, "f32[4", "x:R"], 1, "column", {}),
    ("a spec on two lines", ["redistribute", *M, "f32[4]@x:S(0)\n,y:\tQ", "x:R"], 1, "column", {}),
    ("an unknown dtype", ["redistribute", *M, "f33[4]", "x:R"], 1, "f33", {}),
    ("an unknown mesh dim", ["redistribute", *M, "f32[4]@z:S(0)", "x:R"], 1, 'no dim "z"', {}),
    ("a dim out of range", ["redistribute", *M, "f32[4]@x:S(1)", "x:R"], 1, "dim 1", {}),
    ("an S and a P", ["redistribute", *M, "f32[4]@x:S(0),x:P", "x:R"], 1, "x", {}),
    ("P kinds that do not mix", ["redistribute", *M, "f32[4]@x:P(sum),y:P(max)", "x:R"], 1, "P(", {}),
    ("9 dims", ["redistribute", *M, "f32[1,1,1,1,1,1,1,1,1]", "x:R"], 1, "dims", {}),
    ("sizes that overflow", ["redistribute", *M, "f32[9223372036854775807,9223372036854775807]", "x:R"], 1, "f32[", {}),
    ("a star with nothing at hand", ["redistribute", *M, "f32[4]@*", "x:R"], 1, "*", {}),
    ("a star on another mesh", ["redistribute", *M, "--to-mesh=a=8", "f32[4]", "*"], 1, "*", {}),
    ("shapes that differ", ["redistribute", *M, "f32[4]", "f32[5]"], 1, "different shapes", {}),
    ("P of another kind", ["redistribute", *M, "f32[4]@x:P(sum)", "x:P(max)"], 1, "does not become", {}),
    ("a rule without a mesh", ["rule", "matmul", A, B], 2, "expected --mesh", {}),
    ("a rule of nothing", T, 2, "expected OP SPEC", {}),
    ("a rule with an unsized dim", ["rule", "--mesh=x,y=2", "matmul", A, B], 2, "needs --ranks", {}),
    ("no such op", [*T, "zzz", A], 1, 'unknown op "zzz"; dt info', {}),
    ("nearly an op", [*T, "matmull", A, B], 1, "near it: matmul", {}),
    ("the start of an op", [*T, "matmu", A, B], 1, "near it: matmul", {}),
    ("no name at all", [*T, "", A], 1, 'unknown op ""', {}),
    ("a head without a rule", [*T, "matmul(a, b)", A, B], 2, "needs --rule", {}),
    ("a polynomial without a rule", [*T, "--polynomial=a b", "matmul", A, B], 2, "--polynomial", {}),
    ("dtypes without a rule", [*T, "--dtypes=f", "matmul", A, B], 2, "--dtypes", {}),
    ("a number that the row refuses", [*T, "cross_entropy", "f32[4,4]", "i64[4]", "-", "smoothing=9"], 1,
     "expected label_smoothing in 0 .. 1, got 9", {}),
    ("a rule for no head", [*T, "matmul", "--rule=a -> a", "f32[4]"], 1, "column 7", {}),
    ("a rule in no notation", [*T, "f(x)", "--rule=a -> a a", "f32[4]"], 1, "column 8", {}),
    ("a polynomial in no notation", [*T, "f(x)", "--rule=a -> a", "--polynomial=x y", "f32[4]"], 1, "column 3", {}),
    ("an operand in no notation", [*T, "matmul", "f32[4,4]@tp:Q", B], 1, "column 13", {}),
    ("an operand too few", [*T, "matmul", A], 1, "expected a tensor for b", {}),
    ("an operand that is absent", [*T, "matmul", A, "-"], 1, "expected a tensor for b", {}),
    ("no operand at all", [*T, "matmul", "-", "-"], 1, "a", {}),
    ("an operand too many", [*T, "matmul", A, B, B], 1, "expected 2 operands, got 3", {}),
    ("17 operands", [*T, "matmul", *[A] * 17], 1, "more than 16 operands", {}),
    ("9 attributes", [*T, "matmul", *["a=1"] * 9], 1, "more than 8 attributes", {}),
    ("words without end", [*T, "matmul", *[A] * 40], 2, "unexpected argument", {}),
    ("dims that do not fit", [*T, "matmul", A, A], 1, "expected one size for k", {}),
    ("dtypes that differ", [*T, "matmul", A, "f64[512,256]"], 1, "expected one dtype", {}),
    ("an attribute of none", [*T, "matmul", A, B, "dim=1"], 1, "matmul has no attribute dim", {}),
    ("a name that is none", [*T, "matmul", A, B, "1=1"], 1, "column 1", {}),
    ("a dtype that is none", [*T, "cast", A, "dtype=f33"], 1, 'expected a dtype', {}),
    ("a dim out of range", [*T, "softmax", A, "dim=2"], 1, "expected dim in -2 .. 1, got 2", {}),
    ("an attribute twice", [*T, "cast", A, "dtype=f32", "dtype=f64"], 1, "dtype stands twice at column 1", {}),
    ("an attribute left out that must be there", [*T, "cast", A], 1, "cast", {}),
    ("an attribute that another op has", [*T, "cast", A, "value=1"], 1, "cast has no attribute value, it has dtype", {}),
    ("a strict call that moves", [*T, "--strict", "matmul", f"{A}@tp:S(0)", f"{B}@tp:S(1)"], 1,
     f"strict, and its operands do not fit each other; redistribute a {A}@tp:S(0) as R (393216 bytes)", {}),
    ("a rule on a bad topology", [*T, "--topology=rack=8", "matmul", A, B], 1, '"rack"', {}),
    ("a topology in no notation", ["redistribute", *M, "--topology=node", "f32[4]", "x:R"], 1, "topology", {}),
    ("an average to integers that are summed", ["redistribute", "--mesh=a=4", "f32[16]@a:P(avg)", "i32[16]@a:P(sum)"], 1,
     "P(avg) of integers", {}),
    ("to an average of integers", ["redistribute", "--mesh=a=4", "f64[16]@a:S(0)", "u8[16]@a:P(avg)"], 1,
     "P(avg) of integers", {}),
    ("an unknown level", ["redistribute", *M, "--topology=rack=8", "f32[4]", "x:R"], 1, '"rack"', {}),
    ("a topology too small", ["redistribute", *M, "--topology=node=2", "f32[4]", "x:R"], 1, "at least 8 places", {}),
    ("the variable, too", ["redistribute", *M, "f32[4]", "x:R"], 1, "at least 8 places", {"DT_TOPOLOGY": "node=2"}),
    ("info with a bad variable", ["info"], 1, "topology", {"DT_TOPOLOGY": "rack=2"}),
    ("a bad log level", ["redistribute", *M, "f32[4]", "x:R"], 1, "DT_LOG", {"DT_LOG": "loud"}),
]

# Texts: name, arguments, what stdout must say.
TEXTS = [
    ("--help", ["--help"], ["usage: dt COMMAND", "redistribute", "a later version"]),
    ("help", ["help"], ["usage: dt COMMAND"]),
    ("help of a command", ["help", "redistribute"], ["usage: dt redistribute", "--to-mesh", "SOURCE TARGET"]),
    ("--help of a command", ["redistribute", "--mesh", "x=2", "--help"], ["usage: dt redistribute", "--topology"]),
    ("--version", ["--version"], ["dt 0."]),
    ("info", ["info"], ["version", "backends", "dry", "dry, threads, mpi (not in this build)", "CPU", "DT_TOPOLOGY", "--dt-small",
                        "65536", "GB/s"]),
    ("the op table", ["info", "--ops"], ["op ", "matmul(a, b)", "... m k, ... k n -> ... m n", "product of matrices"]),
    ("a rule", ["rule", "--mesh", "dp=2,tp=4", "matmul", f"{A}@dp:S(0),tp:S(0)", f"{B}@tp:S(1)"],
     ["op          matmul(a, b)", "all_gather tp", "result  f32[64,256]@dp:S(0),tp:S(1)\n", "received by the busiest",
      "dp     a S(m), b R -> S(m)", "not a S(m), b S(n)", "\n bytes     us  a  "]),
    ("a rule with nothing to choose", [*T, "matmul", A, B], ["no alternatives\n"]),
    ("a rule and an absent operand", [*T, *LINEAR, "f32[4,6]", "f32[3,6]", "-"], ["\nb        absent\n"]),
    ("help of rule", ["rule", "--help"], ["usage: dt rule [OPTION...] OP SPEC...", "--strict", "NAME=VALUE"]),
    ("a plan", ["redistribute", *M, "bf16[16,8]@x:P,y:S(0)", "*,x:R"],
     ["all_reduce", "sums in f32", "ratio 1\n", "peak", "f32"]),
    ("a plan by link classes", ["redistribute", *M, "--topology", "node=4,gpu=2", "f32[16,8]@x:S(0)", "y:S(0)"],
     ["node", "gpu", "over this link"]),
    ("nothing to do", ["redistribute", *M, "f32[16,8]@x:S(0)", "*"], ["nothing to do", "ratio 1\n"]),
    ("options after arguments and a --", ["redistribute", "f32[4]", "--mesh=x=2", "--", "x:S(0)"],
     ["target  f32[4]@x:S(0)"]),
]


def run(arguments, variables=None):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DT_")}
    return subprocess.run([DT, *arguments], capture_output=True, text=True, timeout=240, check=False,
                          env={**clean, **(variables or {})})


def differences(found, wanted):
    """What a plan as JSON says otherwise than a row."""
    steps = found["steps"]
    seen = {"steps": len(steps) if isinstance(wanted.get("steps"), int) else [step["kind"] for step in steps],
            **{key: [step[key] for step in steps] for key in ("dims", "sums", "sums_in")}}
    for key, value in wanted.items():
        got = seen.get(key, found.get(key))
        if value is not None and got != value:
            yield f"{key}: {got}, expected {value}"


def promises(found):
    """What every plan must keep, broken."""
    checks = {
        "step bytes add up to bytes": sum(step["bytes"] for step in found["steps"]) >= found["bytes"],
        "bytes reach the bound": found["bytes"] >= found["lower_bound"],
        "total reaches its bound": found["total"] >= found["total_bound"] * (1 - 1e-9),
        "the busiest has no more than all": found["bytes"] <= found["total"],
        "links have names": all(link["name"] and link["bytes"] <= found["bytes"] for link in found["links"]),
        "no link, no bytes": bool(found["links"]),
    }
    return [name for name, kept in checks.items() if not kept]


def try_plan(mesh, source, target, more, wanted):
    begin = time.monotonic()
    done = run(["redistribute", "--mesh", mesh, "--json", *more, source, target])
    if done.returncode or done.stderr:
        return [f"exit status {done.returncode}: {done.stderr}"]
    found = json.loads(done.stdout)
    slow = time.monotonic() - begin > LONG
    ran = try_run(mesh, source, target, more)
    return [*differences(found, wanted), *promises(found), *(["too slow"] if slow else []), *ran]


def try_run(mesh, source, target, more):
    """The same plan carried out on threads, where there are not too many ranks."""
    sizes = [int(dim.split("=")[1]) for dim in mesh.split(",") if "=" in dim]
    if len(sizes) < len(mesh.split(",")) or math.prod(sizes) > MOST_THREADS:
        return []
    done = run(["redistribute", "--mesh", mesh, "--json", "--run", *more, source, target])
    if done.returncode or done.stderr:
        return [f"--run: exit status {done.returncode}: {done.stderr}"]
    return [] if json.loads(done.stdout).get("verified") is True else ["--run: not verified"]


def find_rule(mesh, arguments):
    done = run(["rule", "--mesh", mesh, "--json", *arguments])
    if done.returncode or done.stderr:
        raise ValueError(f"exit status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def rule_promises(found):
    """What every answer must keep, broken."""
    inputs, others = found["inputs"], found["alternatives"]
    moving = inputs + found.get("pulls", [])
    free = [entry for entry in inputs if entry["used"] == entry["given"]]
    checks = {
        "what is used as given does not move": all(not entry["steps"] and not entry["bytes"] for entry in free),
        "the busiest of all has at least the busiest of each":
            max(entry["bytes"] for entry in moving) <= found["bytes"] <= sum(entry["bytes"] for entry in moving),
        "step bytes add up": all(sum(step["bytes"] for step in entry["steps"]) >= entry["bytes"] for entry in inputs),
        "alternatives are other ways": all([e["used"] for e in inputs] != other["inputs"] for other in others),
        "as many specs everywhere": all(len(other["inputs"]) == len(inputs)
                                        and len(other["outputs"]) == len(found["outputs"]) for other in others),
        "every mesh dim has a reason": all(along["why"] for along in found["along"]),
    }
    return [name for name, kept in checks.items() if not kept]


def try_rule(mesh, arguments, wanted):
    found = find_rule(mesh, arguments)
    seen = {
        "used": [entry["used"] for entry in found["inputs"]],
        "moves": [[step["kind"] for step in entry["steps"]] for entry in found["inputs"]],
        "pulls": [step["kind"] for entry in found.get("pulls", []) for step in entry["steps"]],
        "dims": [step["dims"] for entry in found["inputs"] for step in entry["steps"]],
        "others": len(found["alternatives"]),
        "along": [along["dim"] for along in found["along"]],
    }
    wrong = rule_promises(found)
    for key, value in wanted.items():
        said = [along[key] for along in found["along"]] if key in ("why", "why_not") else None
        if said is not None:
            good = not any(said) if value is None else any(value in (text or "") for text in said)
        else:
            good = seen.get(key, found.get(key)) == value
        if not good:
            wrong.append(f"{key}: {said or seen.get(key, found.get(key))}, expected {value}")
    return wrong


def try_ops():
    """Each row says of itself what a call of it says."""
    ops = json.loads(run(["info", "--ops", "--json"]).stdout)["ops"]
    checks = {
        "matmul is there": [op["rule"] for op in ops if op["name"] == "matmul"] == ["... m k, ... k n -> ... m n"],
        "heads begin with names": all(op["head"].startswith(op["name"] + "(") for op in ops),
        "names are different": len({op["name"] for op in ops}) == len(ops),
        "each has a sentence": all(op["doc"] for op in ops),
        "each has a rule, or derives it": all(op["rule"] or op["derived"] for op in ops),
    }
    return [name for name, good in checks.items() if not good]


def try_refusal(arguments, status, says, variables):
    done = run(arguments, variables)
    found = []
    if done.returncode != status:
        found.append(f"exit status {done.returncode}, expected {status}")
    if done.stdout:
        found.append(f"stdout is not empty: {done.stdout}")
    if done.stderr.count("\n") != 1 or not done.stderr.endswith("\n") or not done.stderr.startswith("dt"):
        found.append(f"stderr is not one line: {done.stderr!r}")
    if says not in done.stderr:
        found.append(f"stderr does not say {says!r}: {done.stderr!r}")
    return found


def try_text(arguments, says):
    done = run(arguments)
    found = [f"does not say {text!r}: {done.stdout}" for text in says if text not in done.stdout]
    found += [f"blanks at the end of {line!r}" for line in done.stdout.splitlines() if line != line.rstrip()]
    return found + ([f"exit status {done.returncode}: {done.stderr}"] if done.returncode or done.stderr else [])


def try_info():
    found = json.loads(run(["info", "--json"], {"DT_TOPOLOGY": "node=2,gpu=8"}).stdout)
    here = [link["name"] for link in found["links"] if link["here"]]
    options = [[option["name"], option["variable"], option["default"]] for option in found["options"]]
    checks = {
        "backends": found["backends"] == {"dry": True, "threads": True, "mpi": False, "nccl": False},
        "links": here == ["node", "gpu"] and all(link["bytes_per_us"] > 0 for link in found["links"]),
        "topology": found["topology"]["text"] == "node=2,gpu=8",
        "machine": found["machine"]["levels"] and found["devices"]["cpu"] >= 1,
        "options": ["dt-small", "DT_SMALL", "65536"] in options,
        "no default is null": ["dt-mesh", "DT_MESH", None] in options,
    }
    return [name for name, good in checks.items() if not good]


def try_full():
    if not os.path.exists("/dev/full"):
        return []
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([DT, "info"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    return [] if done.returncode == 1 and done.stderr.count("\n") == 1 else [f"{done.returncode}, {done.stderr!r}"]


def cases():
    for name, *row in PLANS:
        yield f"plan: {name}", lambda row=row: try_plan(*row)
    for name, *row in RULES:
        yield f"rule: {name}", lambda row=row: try_rule(*row)
    for name, *row in REFUSALS:
        yield f"refuses {name}", lambda row=row: try_refusal(*row)
    for name, *row in TEXTS:
        yield f"prints {name}", lambda row=row: try_text(*row)
    yield "info as JSON", try_info
    yield "ops as JSON", try_ops
    yield "output that cannot be written", try_full


def main():
    listed, failed = list(cases()), 0
    print(f"1..{len(listed)}")
    for n, (name, attempt) in enumerate(listed, 1):
        try:
            found = attempt()
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            found = [repr(error)]
        failed += bool(found)
        for line in "\n".join(found).splitlines():
            print(f"# {line}")
        print(f"{'not ' if found else ''}ok {n} - {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
