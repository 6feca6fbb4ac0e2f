/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads backend: ranks are threads of one process and read each other's memory. */
#ifndef DTI_THREADS_H
#define DTI_THREADS_H

#include "comm/comm.h"
#include "comm/world.h"

/* A rank's end, for its thread; join and leave it with dti_comm_join and dti_comm_leave. NULL: memory ran out. */
dti_comm *dti_threads_new(dti_world *world, dt_context *ctx);
/* When all ranks of the world have left; before the context is destroyed. */
void dti_threads_free(dti_comm *comm);

#endif
