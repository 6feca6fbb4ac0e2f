/* SPDX-License-Identifier: Apache-2.0
 *
 * How declarations are exported and checked; nothing to read here for a user. */
#ifndef DTENSOR_API_H
#define DTENSOR_API_H

#if defined(__GNUC__)
#define DT_API __attribute__((visibility("default")))
#define DT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define DT_API
#define DT_PRINTF(text, first)
#endif

#ifdef __cplusplus
#define DT_BEGIN_DECLS extern "C" {
#define DT_END_DECLS }
#else
#define DT_BEGIN_DECLS
#define DT_END_DECLS
#endif

#endif
