/* Which mesh dim runs over which link? All-reduce bandwidth per mesh dim and size.
 * Run: ./mesh_8gpu --dt-backend=nccl --dt-mesh=a=2,b=2,c=2      (threads: --dt-ranks=8; no data: --dt-dry=8) */
#include <stdio.h>
#include <stdlib.h>
#include <dtensor/dtensor.h>

enum { MAX_REPS = 64 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of one all-reduce of n f32 along one mesh dim. Collective. */
static double time_all_reduce(dt_mesh *mesh, const char *dim, int64_t n, int reps)
{
    dt_context *ctx = dt_mesh_context(mesh);
    double seconds[MAX_REPS] = { 0 };
    char partial[64], whole[64];
    snprintf(partial, sizeof partial, "%s:P(sum)", dim);
    snprintf(whole, sizeof whole, "%s:R,*", dim);
    int outer = dt_scope_push(ctx, DT_SCOPE_NO_GRAD);
    dt_tensor *x = dt_full(dt_spec_create(mesh, DT_F32, DT_SHAPE(n), partial), 1.0);
    for (int i = -3; i < reps; i++) {                                 /* three to warm up */
        int scope = dt_scope_push(ctx, 0);
        dt_context_sync(ctx);
        double begin = dt_context_time(ctx);
        dt_redistribute(x, whole);
        dt_context_sync(ctx);
        if (i >= 0) seconds[i] = dt_context_time(ctx) - begin;
        dt_scope_pop(ctx, scope, NULL);
    }
    dt_scope_pop(ctx, outer, NULL);
    qsort(seconds, (size_t)reps, sizeof *seconds, by_value);
    return seconds[reps / 2];
}

static dt_status rank_main(dt_context *ctx, void *arg)
{
    (void)arg;
    int64_t max_bytes = dt_option_int(ctx, "max-bytes", 256 << 20, "largest message");
    int reps = (int)dt_option_int(ctx, "reps", 20, "repetitions, 1 to 64");
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    if (reps < 1 || reps > MAX_REPS)
        return dt_context_fail(ctx, DT_ERR_ARG, "--reps=%d is not in 1..%d", reps, MAX_REPS);

    dt_mesh *mesh = dt_mesh_create(ctx, NULL);
    dt_print(ctx, "%s\n%-8s %6s %12s %12s %10s\n", dt_mesh_text(mesh), "dim", "ranks", "bytes", "us", "bus GB/s");
    for (int d = 0; d < dt_mesh_dim_count(mesh); d++) {
        const char *dim = dt_mesh_dim_name(mesh, d);
        int p = dt_mesh_size(mesh, dim);
        for (int64_t bytes = 1 << 10; bytes <= max_bytes && !dt_context_status(ctx); bytes *= 16) {
            double t = time_all_reduce(mesh, dim, bytes / 4, reps);
            dt_print(ctx, "%-8s %6d %12lld %12.1f %10.2f\n", dim, p, (long long)bytes, t * 1e6,
                     2.0 * (p - 1) / p * (double)bytes / t / 1e9);
        }
    }
    return dt_context_status(ctx);
}

int main(int argc, char **argv)
{
    return dt_launch(&argc, &argv, rank_main, NULL);
}
