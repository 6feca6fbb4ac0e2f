/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by oneDNN, from the size on where its call costs little: f32, and bf16 where the machine has it. Nothing is
 * empty here: it would divide by zero, or leave the result unwritten. Its threads are this rank's share of the CPUs. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "ops/cpu/product.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <oneapi/dnnl/dnnl.h>

enum { LEAST = 16, LEAST_WORK = 1 << 20 };

/* Of the OpenMP that oneDNN may have come with; nothing links it for this. */
extern void omp_set_num_threads(int threads) __attribute__((weak));

/* A bound rank has CPUs of its own; others share all of them. */
static int share_of(int ranks)
{
    cpu_set_t own, all;
    if (sched_getaffinity(0, sizeof own, &own) || sched_getaffinity(getpid(), sizeof all, &all)) return 1;
    int mine = CPU_COUNT(&own), total = CPU_COUNT(&all);
    if (mine < total) return mine;
    return total > ranks ? total / ranks : 1;
}

/* ---- f32 --------------------------------------------------------------------------------------------------------- */

/* What is added is there before. */
static void lay_out(const dti_product *p)
{
    float *c = p->c;
    const float *add = p->add;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) c[i * p->n + j] = add[i * p->add_row + j * p->add_column];
}

static bool run_f32(const dti_product *p)
{
    if (p->add) lay_out(p);
    return dnnl_sgemm(p->a_transposed ? 'T' : 'N', p->transposed ? 'T' : 'N', p->m, p->n, p->k, 1, p->a,
                      p->a_transposed ? p->m : p->k, p->b, p->transposed ? p->k : p->n, p->add ? 1 : 0, p->c, p->n)
        == dnnl_success;
}

/* ---- bf16 -------------------------------------------------------------------------------------------------------- */

typedef struct matrices {              /* what a call needs; all of it is undone at the end                        */
    dnnl_memory_desc_t a, b, c, add;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t about;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[4];
} matrices;

static bool describe(dnnl_memory_desc_t *to, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step)
{
    dnnl_dims_t sizes = { rows, columns }, steps = { row_step, column_step };
    return dnnl_memory_desc_init_by_strides(to, 2, sizes, dnnl_bf16, steps) == dnnl_success;
}

static bool describe_all(const dti_product *p, matrices *m)
{
    return describe(&m->a, p->m, p->k, p->a_transposed ? 1 : p->k, p->a_transposed ? p->m : 1)
        && describe(&m->b, p->k, p->n, p->transposed ? 1 : p->n, p->transposed ? p->k : 1)
        && describe(&m->c, p->m, p->n, p->n, 1) && describe(&m->add, 1, p->n, p->n, 1);
}

/* It keeps what it made for equal descriptions. */
static bool make(const dti_product *p, matrices *m)
{
    dnnl_matmul_desc_t wanted;
    return describe_all(p, m) && dnnl_engine_create(&m->engine, dnnl_cpu, 0) == dnnl_success
        && dnnl_stream_create(&m->stream, m->engine, dnnl_stream_default_flags) == dnnl_success
        && dnnl_matmul_desc_init(&wanted, &m->a, &m->b, p->add ? &m->add : NULL, &m->c) == dnnl_success
        && dnnl_primitive_desc_create(&m->about, &wanted, NULL, m->engine, NULL) == dnnl_success
        && dnnl_primitive_create(&m->primitive, m->about) == dnnl_success;
}

static bool execute(const dti_product *p, matrices *m)
{
    const dnnl_memory_desc_t *about[] = { &m->a, &m->b, &m->c, &m->add };
    void *const data[] = { (void *)(uintptr_t)p->a, (void *)(uintptr_t)p->b, p->c, (void *)(uintptr_t)p->add };
    static const int names[] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS };
    dnnl_exec_arg_t args[4];
    int count = p->add ? 4 : 3;
    for (int i = 0; i < count; i++) {
        if (dnnl_memory_create(&m->memory[i], about[i], m->engine, data[i]) != dnnl_success) return false;
        args[i] = (dnnl_exec_arg_t){ names[i], m->memory[i] };
    }
    return dnnl_primitive_execute(m->primitive, m->stream, count, args) == dnnl_success
        && dnnl_stream_wait(m->stream) == dnnl_success;
}

static void undo(matrices *m)
{
    for (int i = 0; i < 4; i++)
        if (m->memory[i]) dnnl_memory_destroy(m->memory[i]);
    if (m->primitive) dnnl_primitive_destroy(m->primitive);
    if (m->about) dnnl_primitive_desc_destroy(m->about);
    if (m->stream) dnnl_stream_destroy(m->stream);
    if (m->engine) dnnl_engine_destroy(m->engine);
}

static bool run_bf16(const dti_product *p)
{
    matrices m;
    memset(&m, 0, sizeof m);
    bool row = p->add_row == 0 && p->add_column == 1;
    bool done = (!p->add || row) && make(p, &m) && execute(p, &m);
    undo(&m);
    return done;
}

/* ---- front ------------------------------------------------------------------------------------------------------- */

static bool is_large(const dti_product *p)
{
    return p->m >= LEAST && p->n >= LEAST && p->k >= LEAST && p->m * p->n >= LEAST_WORK / p->k;
}

bool dti_product_fast(const dti_product *p)
{
    if ((p->dtype != DT_F32 && p->dtype != DT_BF16) || !is_large(p)) return false;
    if (omp_set_num_threads) omp_set_num_threads(share_of(p->ranks));
    return p->dtype == DT_F32 ? run_f32(p) : run_bf16(p);
}
