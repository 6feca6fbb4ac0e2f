/* SPDX-License-Identifier: Apache-2.0
 *
 * One line per dtype: its name in notation and the bytes of an element. No arithmetic and no conversion.
 * Invariant: every dtype of the enum has a name. */
#include <dtensor/types.h>

typedef struct dtype_row { const char *name; size_t bytes; } dtype_row;

static const dtype_row dtypes[DT_DTYPE_COUNT] = {
    [DT_DTYPE_DEFAULT] = { "default", 0 },
    [DT_F64] = { "f64", 8 },
    [DT_F32] = { "f32", 4 },
    [DT_BF16] = { "bf16", 2 },
    [DT_F16] = { "f16", 2 },
    [DT_I64] = { "i64", 8 },
    [DT_I32] = { "i32", 4 },
    [DT_U8] = { "u8", 1 },
    [DT_BOOL] = { "bool", 1 },
};

const char *dt_dtype_text(dt_dtype dtype)
{
    return (unsigned)dtype < DT_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

size_t dt_dtype_bytes(dt_dtype dtype)
{
    return (unsigned)dtype < DT_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}
