/* SPDX-License-Identifier: Apache-2.0
 *
 * A checksum of a global value that does not depend on who holds what: the wrapping sum, over elements, of a hash of
 * the global index and the value's bits. Sums of parts add up to that of the whole. -0 is not +0, all NaNs are alike,
 * and so are all trues; the dtype's name does not count. The same for every byte order. */
#ifndef DTI_SUM_H
#define DTI_SUM_H

#include <dtensor/types.h>

/* Of elements first .. first + count - 1, in row-major order, with these values. */
uint64_t dti_checksum(dt_dtype dtype, int64_t first, int64_t count, const void *values);

#endif
