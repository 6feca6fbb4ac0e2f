/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing to a tensor: tensors are values, so who writes is the only owner. */
#include <string.h>

#include "comm/comm.h"
#include "tensor/tensor.h"

static bool refuse(const dt_tensor *x, const char *who, const char *why)
{
    dti_fail(x->ctx, DT_ERR_STATE, "%s %s is to be written, and %s", who, dt_spec_text(x->spec), why);
    return false;
}

/* Hidden handles, but x itself, that insist on the value: of functions that were recorded, of gradients. */
static int needed(const dt_tensor *x)
{
    return x->body ? x->body->references - x->body->handles - x->body->kept - x->hidden : 0;
}

/* Is a handle another tensor? One that is a result of its own is, but where it is the last. */
static bool has_others(const dt_tensor *x)
{
    if (!x->body) return false;
    return x->hidden ? x->body->handles > 0 : x->body->others > 0 && x->body->handles > 1;
}

/* Who holds the elements besides x's handles: tensors, work that was started, peers that read. */
static bool shares_storage(const dt_tensor *x)
{
    return x->storage && x->storage->references > (x->body ? x->body->references : 1);
}

/* Peers are waited for only where somebody else holds the elements. */
static bool withdraw(const dt_tensor *x)
{
    const dti_comm *comm = dti_comm_of(x->ctx);
    if (!comm || !comm->ops->withdraw || !shares_storage(x)) return true;
    return comm->ops->withdraw(x->ctx->peers.comm, x->storage) == DT_OK;
}

/* A gradient is its leaf's alone, whatever it came from. */
static bool part_from_others(dt_tensor *x)
{
    dti_storage *own = x->storage ? dti_storage_new(x->ctx, x->storage->n) : NULL;
    if (x->storage && !own) return false;
    if (own && own->n) memcpy(own->bytes, x->storage->bytes, own->n);
    dti_tensor_leave(x);
    dti_storage_release(x->storage);
    x->storage = own;
    return true;
}

bool dti_tensor_own(dt_tensor *x, const char *who)
{
    bool others = has_others(x);
    if (!x->hidden && needed(x)) return refuse(x, who, "the tape still needs it: let backward pass before");
    if (x->body) dti_tensor_drop_copies(x);
    if (!withdraw(x)) return false;
    others |= shares_storage(x);
    if (x->hidden) return !(others || needed(x)) || part_from_others(x);
    return !others || refuse(x, who, "another tensor, or work not waited for, shares its elements: see dt_copy");
}

void dti_tensor_written(dt_tensor *x)
{
    x->ctx->writes++;
    if (!x->body) return;
    x->body->writes++;
    x->body->written = x->ctx->writes;
}
