/* SPDX-License-Identifier: Apache-2.0
 *
 * A context and its end of a backend, introduced to each other; and calls by name, made of exchanges. */
#include "comm/comm.h"

#include <stdlib.h>

static void failed(void *comm) { ((dti_comm *)comm)->ops->failed(comm); }

static dt_status cleared(void *comm) { return ((dti_comm *)comm)->ops->cleared(comm); }

static void reclaim(void *comm) { ((dti_comm *)comm)->ops->reclaim(comm); }

dti_comm *dti_comm_of(const dt_context *ctx) { return ctx->peers.comm; }

void dti_comm_join(dti_comm *comm)
{
    comm->ctx->peers = (dti_peers){ .comm = comm, .failed = failed, .cleared = cleared,
                                    .reclaim = comm->ops->reclaim ? reclaim : NULL };
}

void dti_comm_leave(dti_comm *comm)
{
    comm->ops->leave(comm);
    comm->ctx->peers = (dti_peers){ 0 };
}

/* ---- calls by name ----------------------------------------------------------------------------------------------- */

static dti_exchange exchange_of(const dti_message *m, dti_storage *source, void *target)
{
    return (dti_exchange){ .call = m->call, .dtype = m->dtype, .source = source, .target = target,
                           .target_dtype = m->dtype };
}

/* The root's puts, where its backend wants them: one to every other member. */
static bool broadcast_puts(const dti_group *group, int64_t n, dti_exchange *exchange, dti_copy **puts)
{
    *puts = NULL;
    if (group->comm->ops->shares_memory || group->n == 1) return true;
    *puts = calloc((size_t)group->n - 1, sizeof **puts);
    if (!*puts) return false;
    for (int m = 0; m < group->n; m++)
        if (m != group->index) (*puts)[exchange->put_count++] = (dti_copy){ .member = m, .run = n };
    exchange->puts = *puts;
    return true;
}

dt_status dti_comm_broadcast(dti_group *group, const dti_message *message, int root, dti_storage *source, void *target)
{
    bool is_root = group->index == root;
    dti_copy get = { .member = root, .run = message->n }, *puts = NULL;
    dti_exchange exchange = exchange_of(message, is_root ? source : NULL, target);
    exchange.gets = &get;
    exchange.get_count = target && !(is_root && target == source->bytes);
    if (is_root && !broadcast_puts(group, message->n, &exchange, &puts))
        return dti_fail(group->comm->ctx, DT_ERR_MEMORY, "out of memory for %s to %d ranks", message->call.text,
                        group->n);
    dt_status status = dti_exchange_run(group, &exchange);
    free(puts);
    return status;
}

dt_status dti_comm_permute(dti_group *group, const dti_message *message, int to, dti_storage *source, int from,
                           void *target)
{
    dti_copy get = { .member = from, .run = message->n }, put = { .member = to, .run = message->n };
    dti_exchange exchange = exchange_of(message, to == DTI_NOBODY ? NULL : source, from == DTI_NOBODY ? NULL : target);
    exchange.gets = &get;
    exchange.get_count = from != DTI_NOBODY;
    exchange.puts = group->comm->ops->shares_memory ? NULL : &put;
    exchange.put_count = exchange.puts && to != DTI_NOBODY && to != group->index;
    return dti_exchange_run(group, &exchange);
}
