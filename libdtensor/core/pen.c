/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pen.h"

#include <stdarg.h>
#include <stdio.h>

void dti_put(dti_pen *pen, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = pen->at < pen->room ? pen->room - pen->at : 0;
    int wrote = vsnprintf(room ? pen->text + pen->at : NULL, room, format, args);
    va_end(args);
    if (wrote > 0) pen->at += (size_t)wrote;
}
