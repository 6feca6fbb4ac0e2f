/* SPDX-License-Identifier: Apache-2.0
 *
 * The op table: the library's rows, file by file. */
#include <string.h>

#include "ops/tables.h"

static const dt_op *const *const tables[] = {
    dti_ops_elementwise, dti_ops_reduce, dti_ops_matmul, dti_ops_einsum, dti_ops_normalize, dti_ops_index,
    dti_ops_view, dti_ops_move, dti_ops_triangle, dti_ops_fill, dti_ops_into, dti_ops_list, dti_ops_random,
    dti_ops_order, dti_ops_attention, dti_ops_cross_entropy, dti_ops_derivatives, dti_ops_parts,
};

int dt_op_count(void)
{
    int n = 0;
    for (int t = 0; t < DT_COUNT(tables); t++)
        for (int i = 0; tables[t][i]; i++) n++;
    return n;
}

const dt_op *dt_op_at(int i)
{
    for (int t = 0; t < DT_COUNT(tables); t++)
        for (int k = 0; tables[t][k]; k++)
            if (i-- == 0) return tables[t][k];
    return NULL;
}

static bool is_named(const dt_op *op, const char *name)
{
    size_t n = strlen(name);
    return strncmp(op->head, name, n) == 0 && op->head[n] == '(';
}

const dt_op *dt_op_find(const char *name)
{
    for (int i = 0; name && i < dt_op_count(); i++)
        if (is_named(dt_op_at(i), name)) return dt_op_at(i);
    return NULL;
}
