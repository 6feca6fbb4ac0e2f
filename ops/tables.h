/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of each file of ops; each list ends with NULL. */
#ifndef DTI_OPS_TABLES_H
#define DTI_OPS_TABLES_H

#include <dtensor/op.h>

extern const dt_op *const dti_ops_elementwise[], *const dti_ops_reduce[], *const dti_ops_matmul[],
    *const dti_ops_einsum[], *const dti_ops_normalize[], *const dti_ops_index[], *const dti_ops_view[],
    *const dti_ops_move[], *const dti_ops_triangle[], *const dti_ops_fill[], *const dti_ops_into[],
    *const dti_ops_list[], *const dti_ops_random[], *const dti_ops_order[], *const dti_ops_attention[],
    *const dti_ops_cross_entropy[], *const dti_ops_derivatives[], *const dti_ops_parts[];

#endif
