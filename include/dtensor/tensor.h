/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor is a global value of which each rank holds a part. Makers take the spec, then what fills it. The global
 * value is the same on every mesh. Tensors are values: nothing writes one but dt_..._into and optimisers. They are
 * handles of the scope. Functions are local unless they say otherwise. Questions about a value are for the ranks of its
 * mesh; others may ask, too: they hold nothing and learn nothing: an item is NaN, a checksum 0, any two are close, host
 * memory stays as it is. */
#ifndef DTENSOR_TENSOR_H
#define DTENSOR_TENSOR_H

#include <dtensor/plan.h>

DT_BEGIN_DECLS

/* ---- making ------------------------------------------------------------------------------------------------------ *
 * A new tensor on a spec: each rank makes its own part, so nothing moves. The global value hangs on the arguments
 * alone, never on the mesh. NULL and DT_ERR_MEMORY; what else is said.                                               */

typedef void (*dt_fill_fn)(const dt_box *box, void *values, void *arg); /* write the values of one box, row-major   */

DT_API dt_tensor *dt_zeros(const dt_spec *spec);                     /* 0 everywhere                               */
DT_API dt_tensor *dt_full(const dt_spec *spec, double value);        /* one number everywhere                      */
DT_API dt_tensor *dt_arange(const dt_spec *spec, double first, double step); /* by row-major global index          */
DT_API dt_tensor *dt_rand(const dt_spec *spec, uint64_t seed);       /* uniform in [0, 1), integers: all bits      */
DT_API dt_tensor *dt_randn(const dt_spec *spec, uint64_t seed);      /* normal, mean 0, deviation 1                */
/* By a function of global indices, called for each box that this rank holds (dt_spec_boxes). */
DT_API dt_tensor *dt_from_fn(const dt_spec *spec, dt_fill_fn fill, void *arg);
/* From the whole value in host memory, row-major in the spec's dtype, copied: rank root's, which is sent to the others,
 * whose values may be NULL; or (root -1) each rank's own, no messages. Collective. DT_ERR_SHAPE: n_bytes is not the
 * value's size. */
DT_API dt_tensor *dt_from_host(const dt_spec *spec, int root, const void *values, size_t n_bytes);
/* This rank's part as a tensor on a mesh of one, and back. grad: the gradient's placements, never guessed. The way back
 * may make a P tensor; the part of one is refused, DT_ERR_PLACEMENT. Collective. */
DT_API dt_tensor *dt_to_local(dt_tensor *x, const char *grad);
DT_API dt_tensor *dt_from_local(dt_tensor *local, const dt_spec *spec, const char *grad);

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* What it is and how it lies; NULL for NULL. */
DT_API const dt_spec *dt_tensor_spec(const dt_tensor *x);
DT_API int64_t dt_tensor_size(const dt_tensor *x, int dim);          /* one global size                            */
/* This rank's part, row-major, which the tensor owns; NULL: empty or on a device. */
DT_API const void *dt_tensor_data(const dt_tensor *x);
/* The whole value, row-major, to the memory of rank root, -1: to all. Collective. DT_ERR_SHAPE: n_bytes is not its
 * size. */
DT_API dt_status dt_tensor_to_host(dt_tensor *x, int root, void *values, size_t n_bytes);
/* Its one element; NaN on error, 0 in a dry run. Collective. */
DT_API double dt_tensor_item(dt_tensor *x);
/* Are the global values alike: |x - y| <= atol + rtol |y| everywhere, or the same infinity, or both NaN? Collective. */
DT_API bool dt_tensor_close(dt_tensor *x, dt_tensor *y, double rtol, double atol);
/* A number for the global value: the same for any mesh and placements. Collective. */
DT_API uint64_t dt_tensor_checksum(dt_tensor *x);
DT_API const char *dt_tensor_text(dt_tensor *x);                     /* spec, values, who holds what. Collective   */

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

DT_API dt_tensor *dt_tensor_keep(dt_tensor *x);                      /* move to the outer scope; returns x         */
/* Store beyond scopes; releases what was there; x NULL: only that, and every slot must see it in the end. */
DT_API void dt_tensor_hold(dt_tensor **slot, dt_tensor *x);

/* ---- redistributing ---------------------------------------------------------------------------------------------- */

/* The same value, placed otherwise on its mesh, or on another; the gradient comes back the same way (autograd.h).
 * "tp:R,*" gathers or sums over tp alone. Collective, over both meshes. NULL and the error: as of dt_spec_replace and
 * dt_plan_create. */
DT_API dt_tensor *dt_redistribute(dt_tensor *x, const char *placements);
DT_API dt_tensor *dt_redistribute_to(dt_tensor *x, dt_mesh *mesh, const char *placements);
/* Begin it, and go on meanwhile; dt_work_wait gives the result. Collective. */
DT_API dt_work *dt_redistribute_start(dt_tensor *x, const char *placements);
/* The same of several tensors, which may lie on different meshes of one context; placements of each. What is of one
 * kind and goes along the same ranks goes together: one call of the counters, one message between two ranks, one wait.
 * Of what was started together each is waited for by itself. result, work: n of them. Collective over all. */
DT_API dt_status dt_redistribute_list(dt_tensor *const *x, int n, const char *const *placements, dt_tensor **result);
DT_API dt_status dt_redistribute_start_list(dt_tensor *const *x, int n, const char *const *placements, dt_work **work);
/* Wait for what was begun: the result, once, then DT_ERR_STATE. Collective. */
DT_API dt_tensor *dt_work_wait(dt_work *work);

DT_END_DECLS

#endif
