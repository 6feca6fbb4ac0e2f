/* SPDX-License-Identifier: Apache-2.0
 *
 * Where values come from: tensors that share the call that made them, and functions made of several calls. It knows no
 * op; what there is to say of a call says whoever made it. */
#include <stdlib.h>
#include <string.h>

#include "tensor/tensor.h"

/* A function's first call that counts, and its last. */
typedef struct pair {
    dti_origin origin;             /* first                                                                        */
    dt_context *ctx;
    dti_origin *first, *last;
    char *text;                    /* NULL: nobody asked                                                           */
} pair;

static void destroy(dti_origin *origin)
{
    pair *p = (pair *)(void *)origin;
    dti_origin_release(p->first);
    dti_origin_release(p->last);
    if (p->text) free(p->text);    /* no call of the heap where nobody asked                                      */
    dti_context_give(p->ctx, p, sizeof *p);
}

static const char *explain(dt_context *ctx, dti_origin *origin)
{
    pair *p = (pair *)(void *)origin;
    if (p->text) return p->text;
    const char *first = p->first->explain(ctx, p->first), *last = first ? p->last->explain(ctx, p->last) : NULL;
    if (!last) return NULL;
    size_t bytes = strlen(first) + strlen(last) + 2;
    if (!(p->text = malloc(bytes))) return dti_fail(ctx, DT_ERR_MEMORY, "no memory to explain a tensor"), NULL;
    return strcat(strcat(strcpy(p->text, first), "\n"), last);
}

void dti_tensor_come_of(dt_tensor *y, const dt_tensor *x)
{
    if (!y->origin) y->origin = dti_origin_hold(x->origin);
}

bool dti_tensor_made_of(dt_tensor *y, const dt_tensor *first)
{
    if (!y->origin || !first->origin || y->origin == first->origin) return true;
    pair *p = dti_context_borrow(y->ctx, sizeof *p);
    if (!p) return false;
    *p = (pair){ { 1, destroy, explain }, y->ctx, dti_origin_hold(first->origin), y->origin, NULL };
    y->origin = &p->origin;
    return true;
}
