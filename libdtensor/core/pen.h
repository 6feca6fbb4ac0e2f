/* SPDX-License-Identifier: Apache-2.0
 *
 * Text being written into room that may be too small: it goes on counting, so that one function first measures and then
 * writes. */
#ifndef DTI_PEN_H
#define DTI_PEN_H

#include <stddef.h>
#include <stdint.h>

#include <dtensor/api.h>

typedef struct dti_pen { char *text; size_t room, at; } dti_pen; /* at: characters so far, written or not          */

void dti_put(dti_pen *pen, const char *format, ...) DT_PRINTF(2, 3);
/* The same for one word, one number: where many small ones are put. */
void dti_put_word(dti_pen *pen, const char *word);
void dti_put_number(dti_pen *pen, int64_t number);

/* Rows of cells ended by tabs and new lines, as columns: 'l' or 'r' per column says where its cells stand. */
void dti_put_columns(dti_pen *pen, const char *cells, const char *columns);

/* What a function puts, in memory of its own: the caller frees it. NULL: memory ran out. */
typedef void (*dti_put_fn)(dti_pen *pen, const void *arg);
char *dti_written(dti_put_fn put, const void *arg);

#endif
