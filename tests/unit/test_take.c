/* SPDX-License-Identifier: Apache-2.0
 *
 * The taking part of an exchange, in caches and past them: the same bits, to every target, wherever it lies, and not
 * one byte beside it. */
#include <stdlib.h>
#include <string.h>

#include "comm/take.h"
#include "core/number.h"
#include "suite.h"

enum { ROOM = 6000, MOST = 3, GUARD = 64, REACHES = 3 };

/* With these all that is written is near, far, past the caches. */
static const dti_caches caches[REACHES] = {
    [DTI_NEAR] = { SIZE_MAX, SIZE_MAX }, [DTI_FAR] = { 0, SIZE_MAX }, [DTI_PAST] = { 0, 0 },
};

static const dt_dtype dtypes[] = { DT_F32, DT_F64, DT_BF16, DT_I64, DT_U8 };
static const int64_t lengths[] = { 0, 1, 15, 16, 17, 127, 128, 300, 513, 1024, 5000 };
static const int64_t offsets[] = { 0, 1, 16, 7 };

typedef struct places { char *source[MOST], *target[REACHES][MOST]; } places;

static void places_new(places *p, dt_dtype dtype)
{
    size_t size = ROOM * dt_dtype_bytes(dtype);
    for (int m = 0; m < MOST; m++) {
        p->source[m] = aligned_alloc(GUARD, size / GUARD * GUARD + GUARD);
        for (int k = 0; k < REACHES; k++) p->target[k][m] = aligned_alloc(GUARD, size / GUARD * GUARD + GUARD);
        for (int64_t i = 0; i < ROOM; i++)
            dti_number_set(dtype, (double)((i * 7919 + m * 104729) % 1009) / (dtype >= DT_I64 ? 8 : 37),
                           p->source[m] + (size_t)i * dt_dtype_bytes(dtype));
    }
}

static void places_free(places *p)
{
    for (int m = 0; m < MOST; m++) {
        free(p->source[m]);
        for (int k = 0; k < REACHES; k++) free(p->target[k][m]);
    }
}

/* n elements of each source, from `from` on, combined to `to` of each target. */
static void take(const places *p, dt_dtype dtype, dti_combine combine, int count, int64_t n, int64_t from, int64_t to)
{
    size_t size = ROOM * dt_dtype_bytes(dtype);
    dti_copy gets[MOST];
    const char *sources[MOST];
    for (int m = 0; m < count; m++) {
        gets[m] = (dti_copy){ .member = m, .contribution = m, .run = n, .from = from, .to = to };
        sources[m] = p->source[m];
    }
    for (int reach = 0; reach < REACHES; reach++) {
        dti_scratch scratch = { 0 };
        void *targets[MOST];
        for (int m = 0; m < MOST; m++) targets[m] = memset(p->target[reach][m], 0x5a, size);
        dti_exchange ex = { .dtype = dtype, .target = targets[0], .gets = gets, .get_count = count,
                            .contributions = count, .combine = combine, .target_dtype = dtype };
        expect(dti_take(&ex, sources, targets, MOST, caches[reach], &scratch), "memory");
        dti_scratch_fini(&scratch);
    }
    for (int m = 0; m < REACHES * MOST; m++)
        expect(memcmp(p->target[m / MOST][m % MOST], p->target[DTI_NEAR][0], size) == 0,
               "%s, %d of %lld elements to %lld, target %d, reach %d: other bits", dt_dtype_text(dtype), count,
               (long long)n, (long long)to, m % MOST, m / MOST);
}

static void alike_at_every_reach(void)
{
    for (int t = 0; t < DT_COUNT(dtypes); t++) {
        places p;
        places_new(&p, dtypes[t]);
        for (int l = 0; l < DT_COUNT(lengths); l++)
            for (int o = 0; o < DT_COUNT(offsets); o++)
                for (int count = 1; count <= MOST; count++) {
                    take(&p, dtypes[t], DTI_COMBINE_SUM, count, lengths[l], 3, offsets[o]);
                    take(&p, dtypes[t], DTI_COMBINE_MAX, count, lengths[l], 0, offsets[o]);
                }
        places_free(&p);
    }
}

/* The sums themselves, in the order of sources. */
static void sums_are_in_order(void)
{
    places p;
    places_new(&p, DT_F32);
    take(&p, DT_F32, DTI_COMBINE_SUM, MOST, 5000, 5, 32);
    const float *a = (const void *)p.source[0], *b = (const void *)p.source[1], *c = (const void *)p.source[2];
    const float *y = (const void *)p.target[DTI_PAST][1];
    int64_t odd = 0;
    for (int i = 0; i < 5000; i++) {
        float due = a[5 + i] + b[5 + i];
        due += c[5 + i];
        odd += y[32 + i] != due;
    }
    expect(odd == 0, "%lld of 5000 sums are others", (long long)odd);
    places_free(&p);
}

static const test_row rows[] = {
    { "alike at every reach", alike_at_every_reach },
    { "sums are in order", sums_are_in_order },
};

const suite the_suite = { "take", rows, DT_COUNT(rows) };
