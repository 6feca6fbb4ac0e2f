/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor is a global value of which each rank holds a part. Makers take the spec, then what fills it. The global
 * value is the same on every mesh. Questions about a value are for the ranks of its mesh; others may ask, too: they
 * hold nothing and learn nothing: an item is NaN, a checksum 0, any two are close, host memory stays as it is. */
#ifndef DTENSOR_TENSOR_H
#define DTENSOR_TENSOR_H

#include <dtensor/plan.h>

DT_BEGIN_DECLS

typedef void (*dt_fill_fn)(const dt_box *box, void *values, void *arg); /* row-major values of one box             */

DT_API dt_tensor *dt_zeros(const dt_spec *spec);
DT_API dt_tensor *dt_full(const dt_spec *spec, double value);
DT_API dt_tensor *dt_arange(const dt_spec *spec, double first, double step); /* by row-major global index          */
DT_API dt_tensor *dt_rand(const dt_spec *spec, uint64_t seed);       /* uniform in [0, 1), integers: all bits      */
DT_API dt_tensor *dt_randn(const dt_spec *spec, uint64_t seed);      /* normal, mean 0, deviation 1                */
DT_API dt_tensor *dt_from_fn(const dt_spec *spec, dt_fill_fn fill, void *arg);
/* From the whole value in host memory, copied: rank root's, or (root -1) each rank's own, no messages. Collective. */
DT_API dt_tensor *dt_from_host(const dt_spec *spec, int root, const void *values, size_t n_bytes);
/* This rank's part as a tensor on a mesh of one, and back. grad: the gradient's placements, never guessed. The way back
 * may make a P tensor; the part of one is refused, DT_ERR_PLACEMENT. Collective. */
DT_API dt_tensor *dt_to_local(dt_tensor *x, const char *grad);
DT_API dt_tensor *dt_from_local(dt_tensor *local, const dt_spec *spec, const char *grad);

DT_API const dt_spec *dt_tensor_spec(const dt_tensor *x);
DT_API int64_t dt_tensor_size(const dt_tensor *x, int dim);          /* one global size                            */
/* This rank's part, row-major; NULL: empty or on a device. */
DT_API const void *dt_tensor_data(const dt_tensor *x);
/* Whole value to root, -1: to all. Collective. */
DT_API dt_status dt_tensor_to_host(dt_tensor *x, int root, void *values, size_t n_bytes);
/* Its one element; NaN on error, 0 in a dry run. Collective. */
DT_API double dt_tensor_item(dt_tensor *x);
/* Are the global values alike: |x - y| <= atol + rtol |y| everywhere, or the same infinity, or both NaN? Collective. */
DT_API bool dt_tensor_close(dt_tensor *x, dt_tensor *y, double rtol, double atol);
/* Same for any mesh and placements. Collective. */
DT_API uint64_t dt_tensor_checksum(dt_tensor *x);
DT_API const char *dt_tensor_text(dt_tensor *x);                     /* spec, values, who holds what. Collective   */
DT_API dt_tensor *dt_tensor_keep(dt_tensor *x);                      /* move to the outer scope; returns x         */
/* Store beyond scopes; releases what was there; x NULL: only that, and every slot must see it in the end. */
DT_API void dt_tensor_hold(dt_tensor **slot, dt_tensor *x);

/* Other placements on the same mesh, or on another; the gradient comes back the same way. Collective. */
DT_API dt_tensor *dt_redistribute(dt_tensor *x, const char *placements);
DT_API dt_tensor *dt_redistribute_to(dt_tensor *x, dt_mesh *mesh, const char *placements);
DT_API dt_work *dt_redistribute_start(dt_tensor *x, const char *placements);
/* The same of several tensors, which may lie on different meshes of one context; placements of each. What is of one
 * kind and goes along the same ranks goes together: one call of the counters, one message between two ranks, one wait.
 * Of what was started together each is waited for by itself. result, work: n of them. Collective over all. */
DT_API dt_status dt_redistribute_list(dt_tensor *const *x, int n, const char *const *placements, dt_tensor **result);
DT_API dt_status dt_redistribute_start_list(dt_tensor *const *x, int n, const char *const *placements, dt_work **work);
DT_API dt_tensor *dt_work_wait(dt_work *work);                       /* the result; once, then DT_ERR_STATE        */

DT_END_DECLS

#endif
