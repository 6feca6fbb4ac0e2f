/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the op table, and calls by row. An op is its row: name and operands, the rule of its dims, how its value
 * hangs on its operands, its kernel. What placements it takes and gives, what moves for that and what it costs,
 * follows. The library's own ops are rows of this type (ops.h has a function for each), and a program adds more:
 *
 *     static const dt_op scale_rows = {
 *         .head = "scale_rows(x, w)", .rule = "m n, m -> m n", .polynomial = "x w", .kernel = scale_rows_kernel,
 *         .doc = "each row of x times its number",
 *     };
 *     dt_tensor *y = dt_apply(&scale_rows, (dt_tensor *[]){ x, w }, 2, NULL);
 *
 * Head      "linear(x, w, b)"; "cat(x...)": the last operand as often as a call has it, named x0, x1 .. in the rule;
 *           its letter of dtypes is that of all.
 * Rule      a letter is a dim; "..." any number of leading dims, which broadcast; "( )" a dim that is a product; "?"
 *           ends an operand that may be absent. "!" behind a letter: the kernel wants all of it. A letter no result has
 *           is reduced, by sum unless ":max" or the like says otherwise; one no operand has is new, and may be asked
 *           for in pieces (dt_apply_placed): "!" where the kernel cannot make them. Letters that differ in a number
 *           behind them alone are one dim through an index map (dt_index_map): "n1 m -> n m", rows that were picked.
 *           What splits one splits all of them, each cut anew.
 * Decompose  what "!" wants whole may be split all the same, where the row says how it is then made of other ops.
 * Polynomial  a sum of products of operands and of the number 1: "a b", "x w + b", "x + 1"; "none" where there is none.
 *           ", rising" or ", falling": the value goes up, or down, with its operands.
 * Dtypes    a letter per operand, "->", a letter per result. t: any, all t alike; n: any but bool; f: floats, likewise;
 *           s: a float of any dtype; i: an integer; b: bool. Of a result: i is i64, d the attribute that is a dtype,
 *           s what sums of the operands' dtype are made in, f32 for bf16 and f16, i64 for small integers; w is f64.
 *           NULL: t for all.
 *
 * In place    the first operands may be written: result i is operand i then, of one memory, on the spec that it has.
 *           The others are redistributed to fit it. What such a row writes is not recorded.
 *
 * A row lives as long as the contexts that use it. */
#ifndef DTENSOR_OP_H
#define DTENSOR_OP_H

#include <dtensor/tensor.h>

DT_BEGIN_DECLS

/* Of one row; bytes of its struct of attributes, of a text among them. */
enum { DT_MAX_OPERANDS = 16, DT_MAX_RESULTS = 8, DT_MAX_ATTRIBUTES = 8, DT_MAX_ATTRIBUTE_BYTES = 256,
       DT_MAX_TEXT = 64 };

typedef struct dt_op dt_op;            /* a row, below                                                              */

/* ---- index maps -------------------------------------------------------------------------------------------------- *
 * Where the elements of results come from along one dim, while others go over as they are: parts of a result, each from
 * an operand. Where the dim is split a call is a pull: it moves what parts need, and the kernel is not called.       */

typedef struct dt_index_part {     /* element i of the result, lo <= i < hi, is element from + (i - lo) step       */
    int operand, result;
    int64_t lo, hi, from, step;    /* step: not 0; of the operand                                                  */
} dt_index_part;

typedef struct dt_index_map {
    int dim, part_count;           /* a tensor that lacks the dim is as if it had one element there; 0 parts: none */
    dt_index_part part[DT_MAX_OPERANDS]; /* those of one result ascend. Elements in none are the fill              */
} dt_index_map;

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

typedef struct dt_part {           /* a tensor as a kernel sees it                                                 */
    const dt_spec *spec;           /* global shape, dtype, placements; NULL: an absent operand                     */
    int rank;                      /* in the spec's mesh: dt_spec_boxes(spec, rank) are the elements held          */
    dt_dtype dtype;
    dt_shape shape;                /* of this rank's part                                                          */
    void *data;                    /* row-major; NULL: empty. Operands are only read, but those that are results   */
} dt_part;

typedef struct dt_call {
    dt_context *ctx;               /* for dt_context_fail                                                          */
    const dt_op *op;
    const void *attributes;        /* dims counted from 0                                                          */
    int in_count, out_count;
    dt_part in[DT_MAX_OPERANDS], out[DT_MAX_RESULTS];
    bool adds_number;              /* is the 1 of the polynomial added here? Where the result is P, on one rank    */
    const dt_index_map *map;       /* as derived; NULL: none                                                       */
    double fill;                   /* the row's first attribute that is a number; nothing where it is not added    */
} dt_call;

/* Write the results. Sees its own part, knows no other rank, and never communicates. */
typedef dt_status (*dt_kernel_fn)(const dt_call *call);

/* ---- attributes -------------------------------------------------------------------------------------------------- *
 * A struct of plain values, zeroed where not set. Numbers (DT_ATTRIBUTE_NUMBER) are not part of what a call is
 * remembered by, but their sign is: a rule may depend on it, and on nothing else of them.                            */

typedef enum dt_attribute_kind {
    DT_ATTRIBUTE_INT,              /* int64_t                                                                      */
    DT_ATTRIBUTE_DIM,              /* int; one of the first operand's dims, negative from the end                  */
    DT_ATTRIBUTE_DIMS,             /* dt_dims; likewise, none: all                                                 */
    DT_ATTRIBUTE_BOOL,             /* bool                                                                         */
    DT_ATTRIBUTE_NUMBER,           /* double                                                                       */
    DT_ATTRIBUTE_DTYPE,            /* dt_dtype                                                                     */
    DT_ATTRIBUTE_SHAPE,            /* dt_shape; sizes, -1 where the row finds one                                  */
    DT_ATTRIBUTE_LIST,             /* dt_shape; whole numbers, of which the row knows the meaning                  */
    DT_ATTRIBUTE_TEXT,             /* char[DT_MAX_TEXT], ended by 0                                                */
    DT_ATTRIBUTE_KIND_COUNT
} dt_attribute_kind;

typedef struct dt_attribute { const char *name; dt_attribute_kind kind; size_t offset; } dt_attribute;

/* ---- rows -------------------------------------------------------------------------------------------------------- */

typedef struct dt_derived {        /* what derive writes: whatever of it is not fixed in the row                   */
    char rule[512], polynomial[128];
    bool stretches;                /* "..." is to have this shape                                                  */
    dt_shape batch;
    int size_count;                /* sizes of letters that no operand has                                         */
    struct { char letter; uint8_t number; int64_t size; } size[DT_MAX_DIMS];
    dt_index_map map;              /* of letters with numbers                                                      */
} dt_derived;

/* Write rule and polynomial from attributes and shapes; *out comes with the row's own where it has them. */
typedef dt_status (*dt_derive_fn)(dt_context *ctx, const void *attributes, const dt_shape *shapes, int n,
                                  dt_derived *out);
/* Operations of the whole call, by global shapes; an absent operand has n = -1. */
typedef int64_t (*dt_flops_fn)(const void *attributes, const dt_shape *in, int n);

/* ---- gradients --------------------------------------------------------------------------------------------------- */

typedef struct dt_gradient {
    dt_context *ctx;
    const dt_op *op;
    const void *attributes;
    int in_count, out_count;
    dt_tensor *in[DT_MAX_OPERANDS]; /* those that the polynomial needs for what is wanted, or "saves"; else NULL     */
    dt_shape in_shape[DT_MAX_OPERANDS];
    const dt_spec *in_spec[DT_MAX_OPERANDS]; /* as the caller gave them                                            */
    dt_tensor *out[DT_MAX_RESULTS]; /* kept results; all of them where the row says "saves result"                 */
    dt_tensor *out_grad[DT_MAX_RESULTS]; /* NULL: zero                                                             */
    bool wanted[DT_MAX_OPERANDS];
    dt_tensor *in_grad[DT_MAX_OPERANDS]; /* to be written where wanted; NULL: zero                                 */
} dt_gradient;

/* Write the operands' gradients, as ops on what is there. One that has more dims than its operand, or more than the one
 * element it had along a dim, is summed over these. */
typedef dt_status (*dt_gradient_fn)(dt_gradient *gradient);

/* ---- decompositions ---------------------------------------------------------------------------------------------- */

typedef struct dt_decomposition {
    dt_context *ctx;
    const dt_op *op;
    const void *attributes;        /* dims counted from 0                                                          */
    int in_count, out_count;       /* out: kept ones among them                                                    */
    dt_tensor *in[DT_MAX_OPERANDS]; /* S along the mesh dims that split a letter with "!"; NULL: absent            */
    dt_tensor *out[DT_MAX_RESULTS]; /* to be written: what has the letter is S there, what lacks it R              */
    const char *whole;             /* for dt_redistribute: R along these mesh dims, as it is along others          */
} dt_decomposition;

/* Write the results, as ops on pieces: statistics of rows, dt_redistribute(statistic, d->whole), what is made of both.
 * What moves here is the op's own. Nothing is recorded: the tape has the row. */
typedef dt_status (*dt_decompose_fn)(dt_decomposition *d);

struct dt_op {
    const char *head, *rule, *polynomial, *dtypes;
    dt_derive_fn derive;           /* NULL: the texts say all                                                      */
    const dt_attribute *attributes;
    int attribute_count;
    size_t attribute_bytes;        /* of the struct                                                                */
    dt_kernel_fn kernel;
    dt_flops_fn flops;             /* NULL: one per element of the largest tensor                                  */
    dt_decompose_fn decompose;     /* NULL: letters with "!" are not split                                         */
    dt_gradient_fn gradient;       /* NULL: results have none, or, if they are floats, an error where one is due   */
    const char *doc;
    int writes;                    /* the first so many results are the first operands, written in place           */
    bool shares;                   /* no kernel: a rank's part of the result is that of the operand, as it lies    */
};

/* The op's first result: a new tensor, or, of a row that writes, the operand. Absent operands are NULL. Operands are
 * redistributed where the rule cannot take them as they are; in a strict scope (DT_SCOPE_STRICT) that is
 * DT_ERR_PLACEMENT, with what would do. They may lie on views of the same ranks; then results lie on the first's mesh,
 * its dims split where need be. Collective over these ranks. NULL and the error: DT_ERR_ARG a required operand or an
 * attribute; DT_ERR_SHAPE dims that the rule does not take; DT_ERR_DTYPE; DT_ERR_PLACEMENT, other ranks too; what the
 * kernel says. Of a row that writes, too, DT_ERR_STATE and DT_ERR_PLACEMENT: see "in place" in ops.h. */
DT_API dt_tensor *dt_apply(const dt_op *op, dt_tensor *const *in, int n, const void *attributes);
/* The same with all results: result[0 .. count - 1], those not wanted left out from the end. */
DT_API dt_status dt_apply_all(const dt_op *op, dt_tensor *const *in, int n, const void *attributes,
                              dt_tensor **result, int count);

/* The first result, placed so, as by dt_redistribute; along mesh dims where the operands are R, dims that none of them
 * has (one_hot's last, expand's new ones) are made as they are to lie, and never whole. Collective. */
DT_API dt_tensor *dt_apply_placed(const dt_op *op, dt_tensor *const *in, int n, const void *attributes,
                                  const char *placements);

/* The row on count lists of n operands, one list behind the other in `in`: count calls, whose operands are
 * redistributed together, as dt_redistribute_list does. result: the first result of each, NULL: none is wanted. What
 * one of the calls writes is no operand of another, DT_ERR_ARG. All is checked before anything is done. Collective over
 * all meshes. */
DT_API dt_status dt_apply_list(const dt_op *op, dt_tensor *const *in, int n, int count, const void *attributes,
                               dt_tensor **result);

/* The library's own rows: how many there are, one of them, and one by name (NULL: none). Local. */
DT_API int dt_op_count(void);
DT_API const dt_op *dt_op_at(int i);
DT_API const dt_op *dt_op_find(const char *name);

DT_END_DECLS

#endif
