/* SPDX-License-Identifier: Apache-2.0
 *
 * A context and its end of a backend, introduced to each other. */
#include "comm/comm.h"

static void failed(void *comm) { ((dti_comm *)comm)->ops->failed(comm); }

static dt_status cleared(void *comm) { return ((dti_comm *)comm)->ops->cleared(comm); }

dti_comm *dti_comm_of(const dt_context *ctx) { return ctx->peers.comm; }

void dti_comm_join(dti_comm *comm)
{
    comm->ctx->peers = (dti_peers){ .comm = comm, .failed = failed, .cleared = cleared };
}

void dti_comm_leave(dti_comm *comm)
{
    comm->ops->leave(comm);
    comm->ctx->peers = (dti_peers){ 0 };
}
