/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of element-wise functions over whole blocks of elements, by the dtype that computes. */
#ifndef DTI_OPS_CPU_MAP_H
#define DTI_OPS_CPU_MAP_H

#include "ops/cpu/vector.h"
#include "ops/map.h"

typedef struct dti_map_run {
    dti_map map;
    const void *in[3];             /* elements of the dtype that computes; those that the function does not have:  *
                                    * any                                                                          */
    void *out;                     /* apart from in                                                                */
    size_t blocks;
    double a, b;
    int64_t a_whole, b_whole;      /* the numbers as integers                                                      */
} dti_map_run;

void dti_map_f64(const dti_map_run *run); /* up to DTI_MAP_WIDE                                                     */
void dti_map_f32(const dti_map_run *run);
void dti_map_i64(const dti_map_run *run); /* up to DTI_MAP_INTEGERS; sums wrap                                      */
void dti_map_smooth(const dti_map_run *run); /* from DTI_MAP_WIDE on, f64                                           */
void dti_map_smooth_f32(const dti_map_run *run); /* the same, of f32 and rounded to it once                        */

#endif
