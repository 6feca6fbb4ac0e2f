/* SPDX-License-Identifier: Apache-2.0
 *
 * Dtypes, shapes, boxes, and the names of the handles. Plain values: no call here needs a context. */
#ifndef DTENSOR_TYPES_H
#define DTENSOR_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dtensor/status.h>

DT_BEGIN_DECLS

typedef enum dt_dtype {
    DT_DTYPE_DEFAULT = 0,                                            /* only in params: as the field says          */
    DT_F64, DT_F32, DT_BF16, DT_F16, DT_I64, DT_I32, DT_U8, DT_BOOL,
    DT_DTYPE_COUNT
} dt_dtype;

/* Name of a dtype in notation, "f32"; "default" for DT_DTYPE_DEFAULT, "?" for a number that is none. Local. */
DT_API const char *dt_dtype_text(dt_dtype dtype);
/* Bytes of one element; 0 for DT_DTYPE_DEFAULT and for a number that is none. Local. */
DT_API size_t dt_dtype_bytes(dt_dtype dtype);

enum { DT_MAX_DIMS = 8 };              /* dims of a tensor                                                          */

typedef struct dt_shape { int n; int64_t dim[DT_MAX_DIMS]; } dt_shape; /* n = 0: a scalar                          */
typedef struct dt_dims { int n; int dim[DT_MAX_DIMS]; } dt_dims;       /* some dims of a tensor; n = 0: all        */
typedef struct dt_box { int n; int64_t lo[DT_MAX_DIMS], hi[DT_MAX_DIMS]; } dt_box; /* [lo, hi), global index space */

/* How many elements an array has, and lists of sizes and dims in place: DT_SHAPE(64, 512), DT_DIMS(0, -1); DT_SCALAR is
 * the shape of no dims, DT_ALL stands for all dims of a tensor. */
#define DT_COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#ifdef __cplusplus
#define DT_SHAPE(...) dti_list<dt_shape, int64_t>(__VA_ARGS__)
#define DT_DIMS(...) dti_list<dt_dims, int>(__VA_ARGS__)
#define DT_SCALAR dt_shape()
#define DT_ALL dt_dims()
#else
#define DT_SHAPE(...) ((dt_shape){ (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } })
#define DT_DIMS(...) ((dt_dims){ (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), { __VA_ARGS__ } })
#define DT_SCALAR ((dt_shape){ 0, { 0 } })
#define DT_ALL ((dt_dims){ 0, { 0 } })
#endif

typedef struct dt_context dt_context;  /* one rank's state: options, error, scopes, caches                         */
typedef struct dt_mesh dt_mesh;        /* named dims over ranks                                                    */
typedef struct dt_spec dt_spec;        /* mesh + placements + global shape + dtype; equal specs are one pointer    */
typedef struct dt_plan dt_plan;        /* how one spec becomes another: steps, bytes, bound, time                  */
typedef struct dt_tensor dt_tensor;    /* a global value, this rank's part of it                                   */
typedef struct dt_work dt_work;        /* communication that was started                                           */
typedef struct dt_module dt_module;    /* parameters, children, a forward function                                 */
typedef struct dt_optim dt_optim;      /* optimiser state beside a module's parameters                             */

DT_END_DECLS

#ifdef __cplusplus
template <class List, class Item, class... Items> inline List dti_list(Items... items)
{
    static_assert(sizeof...(Items) <= DT_MAX_DIMS, "more dims than DT_MAX_DIMS");
    List list = {};
    Item values[] = { static_cast<Item>(items)... };
    for (Item value : values) list.dim[list.n++] = value;
    return list;
}
#endif

#endif
