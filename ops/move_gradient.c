/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of what moves elements along a dim: each goes back to where it came from. What was left out gets 0. */
#include <string.h>

#include "ops/gradients.h"
#include "tensor/tensor.h"

static dt_status one(dt_gradient *g, dt_tensor *grad)
{
    g->in_grad[0] = grad;
    return grad ? DT_OK : DT_ERR_STATE;
}

dt_status dti_grad_cat(dt_gradient *g)
{
    int dim = ((const dti_along *)g->attributes)->dim;
    int64_t at = 0;
    for (int i = 0; i < g->in_count; i++) {
        int64_t end = at + g->in_shape[i].dim[dim];
        if (g->wanted[i] && !(g->in_grad[i] = dt_slice(g->out_grad[0], dim, at, end, 1))) return DT_ERR_STATE;
        at = end;
    }
    return DT_OK;
}

dt_status dti_grad_stack(dt_gradient *g)
{
    int64_t dim = ((const dti_stack *)g->attributes)->dim;
    for (int i = 0; i < g->in_count; i++)
        if (g->wanted[i] && !(g->in_grad[i] = dt_select(g->out_grad[0], (int)dim, i))) return DT_ERR_STATE;
    return DT_OK;
}

/* Pieces that nobody used are 0, and of those of a piece's sizes. */
dt_status dti_grad_split(dt_gradient *g)
{
    const dti_unflatten *into = g->attributes;
    dt_tensor *pieces[DT_MAX_RESULTS], *any = NULL;
    int64_t open = g->in_shape[0].dim[into->dim];
    for (int r = 0; r < g->out_count; r++) {
        if (!any) any = g->out_grad[r];
        if (into->sizes.dim[r] > 0) open -= into->sizes.dim[r];
    }
    for (int r = 0; r < g->out_count; r++) {
        dt_shape shape = g->in_shape[0];
        shape.dim[into->dim] = into->sizes.dim[r] < 0 ? open : into->sizes.dim[r];
        pieces[r] = g->out_grad[r] ? g->out_grad[r] : dt_expand(dti_number_like(any, 0), shape);
    }
    return one(g, dt_cat(pieces, g->out_count, into->dim));
}

/* Each element and step - 1 zeros behind it, as a dim of its own that is then made part of dim. */
static dt_tensor *spread(dt_tensor *x, int dim, int64_t step)
{
    return dt_flatten(dt_pad(dt_unsqueeze(x, dim + 1), dim + 1, 0, step - 1, 0), dim, dim + 1);
}

/* By steps, of n elements. */
static dt_tensor *unsliced(dt_tensor *x, int dim, int64_t start, int64_t count, int64_t step, int64_t n)
{
    int64_t after = n - start - (count - 1) * step - 1;                /* elements behind the last one             */
    dt_tensor *most = spread(dt_slice(x, dim, 0, count - 1, 1), dim, step);
    dt_tensor *last = dt_slice(x, dim, count - 1, count, 1);
    return dt_pad(dt_cat((dt_tensor *[]){ most, last }, 2, dim), dim, start, after, 0);
}

dt_status dti_grad_slice(dt_gradient *g)
{
    const dti_slice *s = g->attributes;
    const dt_shape *to = &g->in_shape[0];
    int64_t n = to->dim[s->dim], start = s->start < 0 ? s->start + n : s->start;
    int64_t count = dt_spec_shape(dt_tensor_spec(g->out_grad[0])).dim[s->dim];
    int dim = s->dim, others = dim < 2 ? to->n - 2 : 0;
    dt_tensor *x = g->out_grad[0];
    start = start < 0 ? 0 : start < n ? start : n;
    if (s->step == 1 || count < 2) return one(g, dt_pad(x, dim, start, n - start - count, 0));
    if (to->n < DT_MAX_DIMS) return one(g, unsliced(x, dim, start, count, s->step, n));
    x = dt_flatten(x, others, others + 1);                             /* to have room for one dim more            */
    return one(g, dt_reshape(unsliced(x, others < dim ? dim - 1 : dim, start, count, s->step, n), *to));
}

/* x, with one element along dim, split there by the mesh dims that split it in a spec, as far as x is R along them. */
static dt_tensor *split_as(dt_tensor *x, int dim, const dt_spec *spec)
{
    if (!x || spec->mesh != x->spec->mesh) return x;
    const dti_form *have = &x->spec->form;
    dti_form form = { .dtype = have->dtype }, one_dim = { .dim_count = 1, .factor_first = { 0, 1 }, .size = { 1 } };
    int first = spec->form.split_first[spec->form.factor_first[dim]];
    int8_t n = 0;
    for (int k = first; k < spec->form.split_first[spec->form.factor_first[dim + 1]]; k++) {
        int8_t m = spec->form.split[k];
        bool whole = !have->partial[m];
        for (int i = 0; i < have->split_first[have->factor_first[have->dim_count]]; i++) whole &= have->split[i] != m;
        if (whole) one_dim.split[n++] = m;
    }
    one_dim.split_first[1] = n;
    memcpy(form.partial, have->partial, sizeof form.partial);
    for (int d = 0; d < have->dim_count; d++) dti_form_add_dim(&form, d == dim ? &one_dim : have, d == dim ? 0 : d);
    const dt_spec *to = dti_spec_intern(spec->mesh, &form);
    return to ? dti_tensor_to(x, to) : NULL;
}

/* What is put around one index is split before it is there: no rank then has all of it. */
dt_status dti_grad_select(dt_gradient *g)
{
    const dti_at *at = g->attributes;
    int64_t n = g->in_shape[0].dim[at->dim], index = at->index < 0 ? at->index + n : at->index;
    dt_tensor *x = split_as(dt_unsqueeze(g->out_grad[0], at->dim), at->dim, g->in_spec[0]);
    return one(g, dt_pad(x, at->dim, index, n - index - 1, 0));
}

dt_status dti_grad_roll(dt_gradient *g)
{
    const dti_at *by = g->attributes;
    int64_t n = g->in_shape[0].dim[by->dim];
    return one(g, dt_roll(g->out_grad[0], by->dim, n ? n - by->index % n : 0));
}

dt_status dti_grad_flip(dt_gradient *g)
{
    return one(g, dt_flip(g->out_grad[0], ((const dti_along *)g->attributes)->dim));
}

dt_status dti_grad_pad(dt_gradient *g)
{
    const dti_pad *by = g->attributes;
    return one(g, dt_slice(g->out_grad[0], by->dim, by->before, by->before + g->in_shape[0].dim[by->dim], 1));
}
