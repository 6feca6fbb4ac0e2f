#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_llama.py LLAMA: does the main job do what it says? One model and text on several meshes, stopped, killed and
resumed; what is printed and written; refusals. Prints TAP."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

LLAMA = sys.argv[1]
STEPS = 12
TEXT = "".join(f"line {i}: {i * i % 97} sheep, {i % 7} dogs and a fox that says {'abcdefghij'[i % 10] * (i % 5)}\n"
               for i in range(400))
SMALL = ["--size=tiny", "--batch=4", "--length=32", f"--steps={STEPS}", "--generate=20"]

# Meshes and styles that must give the same losses.
SAME = [
    ("dp", ["--dt-ranks=2"]),
    ("tp", ["--dt-ranks=2", "--dt-mesh=tp=2", "--style=tp"]),
    ("sp, heads fewer than ranks", ["--dt-ranks=4", "--dt-mesh=tp=4", "--style=sp"]),
    ("sp, uneven", ["--dt-ranks=3", "--dt-mesh=tp=3", "--style=sp"]),
    ("fsdp", ["--dt-ranks=3", "--style=fsdp"]),
    ("zero1", ["--dt-ranks=2", "--style=zero1"]),
    ("zero2", ["--dt-ranks=2", "--style=zero2"]),
    ("hsdp", ["--dt-ranks=4", "--dt-mesh=replicate=2,dp=2", "--style=hsdp"]),
    ("sp+fsdp", ["--dt-ranks=4", "--dt-mesh=dp=2,tp=2", "--style=sp+fsdp"]),
]

# Arguments that are refused, and what of the message must be there.
REFUSED = [
    (["--style=sp+x"], 'expected words of dp, tp, sp, zero1, zero2, fsdp and hsdp'),
    (["--size=huge"], "expected tiny, small, 10m or 25m"),
    (["--dtype=f64"], "expected f32 or bf16"),
    (["--text=/no/such/folder"], "/no/such/folder"),
    (["--stepz=1"], "stepz"),
    (["--batch=-1"], "out of range"),
]

results = []


def case(name, passed, why=""):
    results.append(passed)
    print(f"{'ok' if passed else 'not ok'} {len(results)} - {name}", flush=True)
    if not passed:
        print("\n".join("# " + line for line in str(why).splitlines()))


def run(*arguments):
    return subprocess.run([LLAMA, *arguments], capture_output=True, text=True, timeout=100)


def losses(path):
    with open(path) as file:
        return {int(step): float(loss) for step, loss in (line.split(",") for line in file.read().splitlines()[1:])}


def close(a, b, tolerance=1e-5):
    return a.keys() == b.keys() and all(abs(a[s] - b[s]) <= tolerance * abs(b[s]) for s in a)


def train(folder, name, *arguments):
    """Losses and output of a run."""
    csv = os.path.join(folder, name + ".csv")
    done = run(*SMALL, f"--text={folder}/text", f"--csv={csv}", f"--svg={csv}.svg", *arguments)
    return (losses(csv) if done.returncode == 0 else {}), done


def check_one(folder):
    one, done = train(folder, "one")
    out = done.stdout
    case("one rank", done.returncode == 0 and len(one) == STEPS, done.stderr)
    case("the loss falls", bool(one) and one[STEPS - 1] < 0.8 * one[0], one)
    case("it says where parameters lie", re.search(r"layers\.#\.attn\.wq\.weight +2 x  f32\[64,64\]", out), out)
    with open(os.path.join(folder, "one.csv.svg")) as file:
        picture = file.read()
    case("the picture has a point per step", picture.count(",") >= STEPS and picture.endswith("</svg>\n"), picture)
    return one, out


def check_meshes(folder, one, text):
    for name, arguments in SAME:
        same, done = train(folder, "same", *arguments)
        case(f"{name}: the same losses", close(same, one), f"{same}\n{one}\n{done.stderr}")
    written = run(*SMALL, f"--text={folder}/text", "--dt-ranks=4", "--dt-mesh=dp=2,tp=2", "--style=sp+fsdp").stdout
    case("the same text is written", written.splitlines()[-1] == text.splitlines()[-1], written)
    parts, done = train(folder, "parts", "--batch=2", "--micro-batches=2", "--dt-ranks=2", "--style=fsdp")
    case("micro-batches learn, too", bool(parts) and parts[STEPS - 1] < 0.8 * parts[0], f"{parts}\n{done.stderr}")
    bf16, done = train(folder, "bf16", "--dtype=bf16", "--dt-ranks=4", "--dt-mesh=dp=2,tp=2", "--style=sp+fsdp")
    case("bf16 is near", close(bf16, one, 0.05), f"{bf16}\n{one}\n{done.stderr}")


def check_resume(folder, one):
    state = ["--checkpoint=" + os.path.join(folder, "state"), "--save-every=2", "--resume"]
    process = subprocess.Popen([LLAMA, *SMALL, f"--text={folder}/text", *state, "--dt-ranks=4", "--dt-mesh=dp=2,tp=2",
                                "--style=sp+fsdp"], stdout=subprocess.DEVNULL)
    while process.poll() is None and not os.path.exists(os.path.join(folder, "state", "checkpoint.json")):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    case("it is killed while it saves", process.wait() == -signal.SIGKILL, process.returncode)
    rest, done = train(folder, "rest", *state, "--dt-ranks=3", "--style=fsdp")
    case("it goes on elsewhere", bool(rest) and min(rest) > 0 and close(rest, {s: one[s] for s in rest}),
         f"{rest}\n{one}\n{done.stderr}")
    again, done = train(folder, "again", *state)
    case("a run that is done only writes", done.returncode == 0 and again == {}, f"{again}\n{done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "text"), "w") as file:
            file.write(TEXT)
        one, text = check_one(folder)
        if one:
            check_meshes(folder, one, text)
            check_resume(folder, one)
    for arguments, says in REFUSED:
        done = run(*arguments)
        case("refused: " + " ".join(arguments), done.returncode != 0 and says in done.stderr
             and len(done.stderr.splitlines()) == 1, done.stderr)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


sys.exit(main())
