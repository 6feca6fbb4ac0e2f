/* SPDX-License-Identifier: Apache-2.0
 *
 * An outcome that is not yet the context's: the first thing that went wrong with a file, in one sentence. Work with
 * files fails on one rank at a time; who failed tells the others, and all fail with the same sentence. So the ranks go
 * on together, and a program that clears the error may save elsewhere. */
#ifndef DTI_TOLD_H
#define DTI_TOLD_H

#include <dtensor/mesh.h>

typedef struct dti_told { dt_status status; char text[900]; } dti_told; /* all zero: nothing went wrong            */

/* The first time: keep status and sentence. Returns false. */
bool dti_tell(dti_told *told, dt_status status, const char *format, ...) DT_PRINTF(3, 4);
/* The same with what the system says of errno: "...: No such file or directory", DT_ERR_IO. */
bool dti_tell_errno(dti_told *told, const char *format, ...) DT_PRINTF(2, 3);

/* What each rank of a mesh says, n numbers, to all: all[rank * n + i]. false: the error. Collective. */
bool dti_ranks_gather(dt_mesh *mesh, const int64_t *mine, int64_t n, int64_t *all);
/* Bytes of one rank of the mesh to all; the others' bytes are overwritten. false: the error. Collective. */
bool dti_ranks_broadcast(dt_mesh *mesh, int root, void *bytes, int64_t n);
/* Do all say that nothing went wrong? false, and the error on every rank: the sentence of the first that says so.
 * Collective. */
bool dti_told_agree(dt_mesh *mesh, const dti_told *told);

#endif
