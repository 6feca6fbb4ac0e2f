/* SPDX-License-Identifier: Apache-2.0
 *
 * A spec says what a tensor is and where it lies: mesh, placements, global shape, dtype.
 * "f32[64,512]@dp:S(0),tp:P(sum)".
 *   S(d)      the mesh dim splits dim d; S(-1) the last. Mesh dims on one dim split it in the order written.
 *   R         every rank along the mesh dim holds the whole; mesh dims left out are R.
 *   P(kind)   the value is the sum, avg, max, min or prod of what the ranks hold; P alone is P(sum).
 *   *         the mesh dims not named, as they are in the tensor at hand; an error without one.
 * A size may be a product, "f32[(2 14336),8192]@tp:S(0.1)": S(0.1) splits the second factor of dim 0, S(0) the first.
 * A spec keeps only the factors that its cuts need: neighbours that nothing tells apart are one, and S(d.f) counts the
 * factors of the text at hand, for dt_spec_replace those of the canonical one.
 * n over k pieces cuts at ceil(i n / k): 13 over 4 is 4,3,3,3. Uneven and empty pieces are normal. Equal specs are one
 * pointer, and live as long as their context.
 *
 * notation   spec       = dtype "[" [ size {"," size} ] "]" [ "@" placements ] ;  size = int | "(" int int {int} ")" ;
 *            placements = [ item {"," item} ] ;  item = "*" | name ":" place ;
 *            place      = "R" | "S(" ["-"] int ["." int] ")" | "P" ["(" kind ")"] ;
 */
#ifndef DTENSOR_SPEC_H
#define DTENSOR_SPEC_H

#include <dtensor/mesh.h>

DT_BEGIN_DECLS

enum { DT_MAX_FACTORS = 16 };          /* factors of all dims of one spec together                                 */

/* A spec from text; no @: R everywhere. DT_ERR_PARSE: text in no notation, with the column; DT_ERR_SHAPE: more than
 * DT_MAX_DIMS dims, more than DT_MAX_FACTORS factors, sizes that overflow; DT_ERR_PLACEMENT: an unknown mesh dim, one
 * named twice, a dim or factor out of range, P kinds that do not mix (sum with avg does). Local. */
DT_API const dt_spec *dt_spec_parse(dt_mesh *mesh, const char *text);
/* The same from a dtype, a shape and placements; NULL or "": R everywhere. Local. */
DT_API const dt_spec *dt_spec_create(dt_mesh *mesh, dt_dtype dtype, dt_shape shape, const char *placements);
/* The same tensor placed otherwise, where * stands for how it lies now: "tp:R,*" gathers over tp alone. Local. */
DT_API const dt_spec *dt_spec_replace(const dt_spec *spec, const char *placements);
/* Canonical notation: mesh order, mesh dims of one factor together in split order, R left out, the fewest factors;
 * parses back to the same pointer. "" for NULL, and where memory ran out (DT_ERR_MEMORY); a context that has failed
 * still says it. Local. The spec owns the text. */
DT_API const char *dt_spec_text(const dt_spec *spec);
/* The part of that text after the @; "" where all is R. Local. Errors as of dt_spec_text. The spec owns the text. */
DT_API const char *dt_spec_placements(const dt_spec *spec);
/* Is it placed exactly so, in any spelling of it? false and the error for text in no notation. Local. */
DT_API bool dt_spec_has(const dt_spec *spec, const char *placements);
/* Have they one dtype and shape, and place the same elements on the same ranks, whatever mesh dims and factors are
 * called? Local. */
DT_API bool dt_spec_same(const dt_spec *spec, const dt_spec *other);

/* Its parts; NULL, DT_DTYPE_DEFAULT and the scalar shape for NULL. Local. */
DT_API dt_mesh *dt_spec_mesh(const dt_spec *spec);
DT_API dt_dtype dt_spec_dtype(const dt_spec *spec);
DT_API dt_shape dt_spec_shape(const dt_spec *spec);                  /* global                                     */

/* Sizes of what a rank of the mesh, 0 .. size - 1, holds (dt_mesh_rank says which of the run's it is). DT_ERR_ARG and
 * the scalar shape for a rank out of range; dims of size 0 for the rank -1, which is none of the mesh's. Local. */
DT_API dt_shape dt_spec_local_shape(const dt_spec *spec, int rank);
/* The holding of a rank of the mesh as boxes of global indices, in row-major order of their first element; returns how
 * many there are and writes at most max of them. 0 where it holds nothing. DT_ERR_ARG: a rank out of range, boxes NULL
 * where max is not 0; DT_ERR_SHAPE: more boxes than an int counts. Local. */
DT_API int dt_spec_boxes(const dt_spec *spec, int rank, dt_box *boxes, int max);
/* Does it keep every promise of its kind? For tests and debug builds; DT_OK, or the first broken one as an error.
 * Local. */
DT_API dt_status dt_spec_check(const dt_spec *spec);

DT_END_DECLS

#endif
