/* SPDX-License-Identifier: Apache-2.0
 *
 * The dims of an array as two nested walks: over those that a kernel keeps, and within over those that it takes
 * together. Neighbours of one kind are one dim. The innermost is left out of its walk: it is passed over in runs.
 * Whether it is kept or taken depends on the dims alone, not on sizes, so that the order of sums does, too. */
#ifndef DTI_OPS_CPU_DIMS_H
#define DTI_OPS_CPU_DIMS_H

#include <stddef.h>

#include <dtensor/types.h>

typedef struct dti_walk {
    int n;
    int64_t size[DT_MAX_DIMS], step[DT_MAX_DIMS], index[DT_MAX_DIMS]; /* outermost first                           */
    int64_t at;                        /* in elements                                                              */
} dti_walk;

typedef struct dti_nest {
    bool taken;                        /* is the innermost dim?                                                    */
    int64_t inner;                     /* its size                                                                 */
    dti_walk kept, reduced;            /* without it                                                               */
} dti_nest;

dti_nest dti_nest_of(const dt_shape *x, const dt_dims *taken);
/* All places: for (bool more = dti_walk_begin(w); more; more = dti_walk_next(w)). */
bool dti_walk_begin(dti_walk *walk);
bool dti_walk_next(dti_walk *walk);
/* How many there are. */
int64_t dti_walk_count(const dti_walk *walk);

/* n elements of a size, each *step* bytes from the one before. */
void dti_copy_run(char *to, const char *from, int64_t n, int64_t step, size_t size);

#endif
