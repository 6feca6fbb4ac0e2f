/* SPDX-License-Identifier: Apache-2.0
 *
 * The outcomes of a call. Every fallible function returns one of these or NULL; the message with what was expected
 * and what came is on the context (context.h). */
#ifndef DTENSOR_STATUS_H
#define DTENSOR_STATUS_H

#include <dtensor/api.h>

DT_BEGIN_DECLS

typedef enum dt_status {
    DT_OK = 0,
    DT_ERR_ARG,         /* out of range, missing operand, operands of two contexts                                 */
    DT_ERR_PARSE,       /* text in no known notation; the message points at the column                             */
    DT_ERR_SHAPE,       /* shapes do not fit                                                                       */
    DT_ERR_DTYPE,       /* dtypes do not mix                                                                       */
    DT_ERR_PLACEMENT,   /* placement impossible here, or a redistribution implied in strict mode                   */
    DT_ERR_STATE,       /* right call, wrong moment: backward twice, tensor still needed by the tape               */
    DT_ERR_MEMORY,      /* what was asked, what is free, what holds the rest                                       */
    DT_ERR_IO,          /* file or folder                                                                          */
    DT_ERR_UNAVAILABLE, /* built without it, or no such device                                                     */
    DT_ERR_DESYNC,      /* ranks called different things                                                           */
    DT_ERR_PEER,        /* another rank failed first; its message is quoted                                        */
    DT_ERR_TIMEOUT,     /* a rank did not arrive                                                                   */
    DT_ERR_COMM,        /* the transport failed, or the group is already dead                                      */
    DT_ERR_DEVICE,      /* the accelerator failed                                                                  */
    DT_STATUS_COUNT
} dt_status;

/* One sentence that says what a status means; "unknown status" for a number that is none. Local. The text is
 * constant. */
DT_API const char *dt_status_text(dt_status status);

DT_END_DECLS

#endif
