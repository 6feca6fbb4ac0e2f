/* SPDX-License-Identifier: Apache-2.0
 *
 * One line per status: the sentence that says what it means. Messages of single errors are written where they happen.
 * Invariant: every status has a sentence. */
#include <dtensor/status.h>

static const char *const sentences[DT_STATUS_COUNT] = {
    [DT_OK] = "no error",
    [DT_ERR_ARG] = "an argument is out of range, missing or of another context",
    [DT_ERR_PARSE] = "a text is in no known notation",
    [DT_ERR_SHAPE] = "shapes do not fit",
    [DT_ERR_DTYPE] = "dtypes do not mix",
    [DT_ERR_PLACEMENT] = "a placement is impossible here, or strict mode forbids the redistribution it needs",
    [DT_ERR_STATE] = "the call came at the wrong moment",
    [DT_ERR_MEMORY] = "memory ran out",
    [DT_ERR_IO] = "a file or folder could not be read or written",
    [DT_ERR_UNAVAILABLE] = "the library was built without it, or there is no such device",
    [DT_ERR_DESYNC] = "ranks called different things",
    [DT_ERR_PEER] = "another rank failed first",
    [DT_ERR_TIMEOUT] = "a rank did not arrive in time",
    [DT_ERR_COMM] = "the transport failed, or the group of ranks is already dead",
    [DT_ERR_DEVICE] = "the accelerator failed",
};

const char *dt_status_text(dt_status status)
{
    return (unsigned)status < DT_STATUS_COUNT ? sentences[status] : "unknown status";
}
