# SPDX-License-Identifier: Apache-2.0
#
# The model, sizes and rows of bench/train.c on PyTorch: DTensor's parallelize_module, FSDP2's fully_shard, DDP, gloo.
# Beside each of its own rows it runs bench_train's, and prints both and their ratio as one table. What is not counted
# the same way is said in bench/README.md. By hand only: see run_train.sh.
#
#   torch_dtensor_llama.py [--bench=BUILD_DIR/bench/bench_train] [--size=tiny|small|10m] [--steps=N] [--warmup=N]
#                          [--rows=NAME,NAME]
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.utils._python_dispatch import TorchDispatchMode

SIZES = {  # width, layers, heads, kv heads, mlp width, batch, length
    "tiny": (64, 2, 4, 2, 176, 8, 64),
    "small": (128, 4, 8, 4, 344, 8, 128),
    "10m": (320, 8, 8, 4, 864, 8, 256),
}
VOCAB = 256
ROWS = {  # as bench_train --list names them: dp, tp, style
    "1": (1, 1, "dp"),
    "2-dp": (2, 1, "dp"),
    "2-fsdp": (2, 1, "fsdp"),
    "2-tp": (1, 2, "tp"),
    "2-sp": (1, 2, "sp"),
    "4-dp": (4, 1, "dp"),
    "4-fsdp": (4, 1, "fsdp"),
    "4-tp": (1, 4, "tp"),
    "4-sp": (1, 4, "sp"),
    "4-sp+fsdp": (2, 2, "sp+fsdp"),
}

# ---- the model -------------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads, length):
        super().__init__()
        self.d = width // heads
        self.wq = nn.Linear(width, width, bias=False)
        self.wk = nn.Linear(width, kv_heads * self.d, bias=False)
        self.wv = nn.Linear(width, kv_heads * self.d, bias=False)
        self.wo = nn.Linear(width, width, bias=False)
        angle = torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(0, self.d, 2) / self.d))
        self.cos, self.sin = angle.cos()[:, None], angle.sin()[:, None]  # [s, 1, d / 2]

    def turned(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cos - b * self.sin, b * self.cos + a * self.sin), -1)

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (-1, self.d)) for w in (self.wq, self.wk, self.wv))
        q, k, v = (t.transpose(1, 2) for t in (self.turned(q), self.turned(k), v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, width, heads, kv_heads, inner, length):
        super().__init__()
        self.attn_norm = nn.RMSNorm(width, eps=1e-5)
        self.attn = Attention(width, heads, kv_heads, length)
        self.mlp_norm = nn.RMSNorm(width, eps=1e-5)
        self.mlp = Mlp(width, inner)

    def forward(self, x):
        x = x + self.attn(self.attn_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self, width, layers, heads, kv_heads, inner, length):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.layers = nn.ModuleList(Layer(width, heads, kv_heads, inner, length) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, VOCAB, bias=False)
        for w in self.parameters():
            if w.dim() > 1:
                nn.init.normal_(w, std=0.02)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


# ---- placements ------------------------------------------------------------------------------------------------------


def whole(norm, mesh):
    """A norm that every rank computes whole: its weight is a DTensor like all others."""
    return distribute_module(
        norm,
        mesh,
        input_fn=lambda _, x, m: DTensor.from_local(x[0], m, [Replicate()], run_check=False),
        output_fn=lambda _, y, m: y,
    )


def split(model, mesh, sp):
    out = Shard(1) if sp else Replicate()
    once = PrepareModuleInput(input_layouts=(out,), desired_input_layouts=(Replicate(),))
    plan = {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=out),
        "head": ColwiseParallel(input_layouts=out, output_layouts=Shard(-1), use_local_output=False),
        "layers.*.attn": once,
        "layers.*.attn.w[qkv]": ColwiseParallel(),
        "layers.*.attn.wo": RowwiseParallel(output_layouts=out),
        "layers.*.mlp": once,
        "layers.*.mlp.gate": ColwiseParallel(),
        "layers.*.mlp.up": ColwiseParallel(),
        "layers.*.mlp.down": RowwiseParallel(output_layouts=out),
    }
    if sp:
        plan |= {"norm": SequenceParallel(), "layers.*.*_norm": SequenceParallel()}
    parallelize_module(model, mesh, plan)
    if not sp:
        for norm in [m for m in model.modules() if isinstance(m, nn.RMSNorm)]:
            whole(norm, mesh)


def place(model, mesh, style):
    if "sp" in style.split("+") or style == "tp":
        split(model, mesh["tp"], style != "tp")
    if "fsdp" in style:
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
    if style == "dp" and dist.is_initialized():
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model


# ---- a step ----------------------------------------------------------------------------------------------------------


def step_of(model, optim, batch, parallel_loss):
    ids, targets = batch
    optim.zero_grad()
    if parallel_loss:
        with loss_parallel():
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
            loss.backward()
    else:
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
    value = loss.full_tensor() if isinstance(loss, DTensor) else loss
    value = value.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optim.step()
    (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()
    return value


class Bytes(TorchDispatchMode):
    """Bytes a rank receives at least in the collectives it calls: pieces it lacks, and each sum once round."""

    def __init__(self):
        super().__init__()
        self.received = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        out = func(*args, **(kwargs or {}))
        name, n = func.__name__, dist.get_world_size()
        if func.namespace in ("c10d", "_c10d_functional"):
            self.add(name, [t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if torch.is_tensor(t)], args, n)
        return out

    def add(self, name, tensors, args, n):
        ranks = next((a.size() for a in args if isinstance(a, dist.ProcessGroup)), None)
        if ranks is None:  # functional ones name their group
            groups = [a for a in args if isinstance(a, str)]
            ranks = dist.distributed_c10d._resolve_process_group(groups[-1]).size() if groups else n
        size = max((t.numel() * t.element_size() for t in tensors), default=0)
        if "all_reduce" in name or "allreduce" in name:
            self.received += 2 * size * (ranks - 1) // ranks
        elif "all_gather" in name and "functional" not in name or "allgather" in name:
            gathered = size if len(tensors) > 1 else size * ranks
            self.received += gathered * (ranks - 1) // ranks
        elif "reduce_scatter" in name or "all_to_all" in name or "alltoall" in name:
            self.received += size * (ranks - 1) // ranks


def share_of_gloo(run):
    """Time of gloo's calls as its profile has them, over that of one step; calls that overlap count twice."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        since = time.perf_counter()
        run()
        took = time.perf_counter() - since
    spent = sum(e.time_range.elapsed_us() for e in profile.events() if e.name.startswith("gloo:"))
    return 100 * spent * 1e-6 / took


# ---- a rank ----------------------------------------------------------------------------------------------------------


def rank_main(rank, options, name, rendezvous, results):
    try:
        results.put((rank, measure(rank, options, name, rendezvous)))
    except Exception:
        results.put((rank, {"error": traceback.format_exc()}))


def measure(rank, options, name, rendezvous):
    dp, tp, style = ROWS[name]
    width, layers, heads, kv_heads, inner, b, s = SIZES[options.size]
    torch.set_num_threads(max(1, os.cpu_count() // (dp * tp)))
    mesh = None
    if dp * tp > 1:
        dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=dp * tp)
        mesh = init_device_mesh("cpu", (dp, tp), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = place(Llama(width, layers, heads, kv_heads, inner, s), mesh, style)
    decay = [w for w in model.parameters() if w.dim() > 1]
    other = [w for w in model.parameters() if w.dim() == 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}]
    optim = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)
    own = rank // tp
    text = torch.randint(VOCAB, (b, s + 1))[own * (b // dp) : (own + 1) * (b // dp)]
    batch = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    run = lambda: step_of(model, optim, batch, tp > 1)
    for _ in range(options.warmup):
        run()
    usage, times, loss = resource.getrusage(resource.RUSAGE_SELF), [], 0
    cpu = time.process_time()
    for _ in range(options.steps):
        since = time.perf_counter()
        loss = run()
        times.append(time.perf_counter() - since)
    cpu = time.process_time() - cpu
    after = resource.getrusage(resource.RUSAGE_SELF)
    result = {
        "times": times,
        "cpu": cpu / options.steps,
        "faults": (after.ru_minflt - usage.ru_minflt) / options.steps,
        "peak": (after.ru_maxrss - before) / 1024,
        "loss": loss,
        "received": 0,
        "comm": 0,
    }
    if mesh is not None:
        counter = Bytes()
        with counter:
            run()
        weights = sum(w.numel() * w.element_size() for w in model.parameters())
        # DDP's reducer calls gloo below the dispatcher: its buckets are all gradients, reduced once.
        result["received"] = 2 * weights * (dp - 1) // dp if style == "dp" else counter.received
        result["comm"] = share_of_gloo(run)
        dist.barrier()
        dist.destroy_process_group()
    return result


# ---- tables ----------------------------------------------------------------------------------------------------------


def run_torch(options, name):
    dp, tp, style = ROWS[name]
    context = mp.get_context("fork")  # importing torch takes longer than many steps
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        meet = os.path.join(folder, "meet")
        args = (options, name, meet, results)
        ranks = [context.Process(target=rank_main, args=(r, *args)) for r in range(dp * tp)]
        for p in ranks:
            p.start()
        of = {}
        while len(of) < len(ranks):
            rank, result = results.get(timeout=options.timeout)
            of[rank] = result
            if "error" in result:
                for p in ranks:
                    p.terminate()
                sys.exit(f"{name}, rank {rank}:\n{result['error']}")
        for p in ranks:
            p.join()
    times = sorted(of[0]["times"])
    b, s = SIZES[options.size][5:]
    median = statistics.median(times)
    return {
        "step_ms": 1e3 * median,
        "q1": 1e3 * times[len(times) // 4],
        "q3": 1e3 * times[len(times) * 3 // 4],
        "tokens/s": b * s / median,
        "cpu_ms": 1e3 * sum(r["cpu"] for r in of.values()),
        "comm_%": statistics.mean(r["comm"] for r in of.values()),
        "comm_cpu_%": None,
        "recv_KiB": max(r["received"] for r in of.values()) / 1024,
        "peak_MiB": max(r["peak"] for r in of.values()),
        "faults": sum(r["faults"] for r in of.values()),
    }


def run_library(options, name):
    args = [options.bench, "--json", f"--only={name}", f"--size={options.size}", f"--steps={options.steps}"]
    done = subprocess.run(args + [f"--warmup={options.warmup}"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["train"][0]


COLUMNS = ["step_ms", "q1", "q3", "tokens/s", "cpu_ms", "comm_%", "comm_cpu_%", "recv_KiB", "peak_MiB", "faults"]


def cpu():
    with open("/proc/cpuinfo", encoding="ascii") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), "unknown CPU")


def put(name, who, row):
    cells = ("-" if row[c] is None else f"{row[c]:.0f}" if c == "tokens/s" else f"{row[c]:.1f}" for c in COLUMNS)
    print(f"{name:<10}  {who:<8}", *(f"{v:>10}" for v in cells), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench")
    parser.add_argument("--size", default="10m", choices=SIZES)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--timeout", type=float, default=600)
    options = parser.parse_args()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    load = os.getloadavg()
    print(f"{cpu()}, {os.cpu_count()} of them, load {load[0]:.1f} before; PyTorch {torch.__version__}")
    print(f"size {options.size}, {options.steps} steps after {options.warmup}\n")
    print(f"{'row':<10}  {'':<8}", *(f"{c:>10}" for c in COLUMNS), flush=True)
    for name in options.rows.split(","):
        library = run_library(options, name) if options.bench else None
        if library:
            put(name, "library", library)
        peer = run_torch(options, name)
        put(name, "PyTorch", peer)
        if library:
            ratio = {c: peer[c] / library[c] for c in ("step_ms", "cpu_ms")}
            print(f"{'':<10}  {'ratio':<8} {ratio['step_ms']:>10.2f} {ratio['cpu_ms']:>{4 * 11 - 1}.2f}")
    print(f"\nload {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
