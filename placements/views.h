/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands on different views of the same ranks. Views are refined: their axes are cut where any of them is, and where
 * all cuts divide each other, every placement on one of them is one on the common refinement, of the same layout. Pure:
 * meshes and specs are made, nothing moves. */
#ifndef DTI_VIEWS_H
#define DTI_VIEWS_H

#include "placements/spec.h"

enum { DTI_MAX_VIEWS = 16 };       /* operands of a call                                                           */

/* The operands of who, at most DTI_MAX_VIEWS, on one mesh: the first operand's, its dims split where others need it
 * ("tp.0", "tp.1"). on[i] has the layout of in[i]; or, where views have no common refinement, as 2 x 3 and 3 x 2, it is
 * R on that mesh. NULL: absent. false and DT_ERR_PLACEMENT: operands over other ranks. */
bool dti_meshes_join(dt_context *ctx, const char *who, const dt_spec *const *in, int n, const dt_spec **on);
/* The spec of the same layout on another view of the same ranks; *out NULL: there is none. false: the error. */
bool dti_spec_on(const dt_spec *spec, dt_mesh *mesh, const dt_spec **out);

#endif
