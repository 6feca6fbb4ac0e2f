/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run says of itself: where parameters lie, how far it is, what it communicates, how the loss fell. */
#ifndef LLAMA_REPORT_H
#define LLAMA_REPORT_H

#include <dtensor/dtensor.h>

/* The mesh, the size, and where every parameter lies; alike ones of all layers are one line. Local; rank 0 prints. */
void report_model(dt_module *model);

typedef struct report {
    dt_mesh *mesh;
    int64_t first, steps, tokens;  /* the first step of this run, the step after the last, tokens per step         */
    double begin;                  /* seconds, of dt_context_time                                                  */
    dt_counters before;            /* of all dims, when it began                                                   */
    double *loss;                  /* of each step from `first` on                                                 */
    int64_t count;
} report;

/* Begin a report; memory for all losses, given back by report_end. false: the context has failed. Local. */
bool report_begin(report *r, dt_mesh *mesh, int64_t first, int64_t steps, int64_t tokens);
/* A step is done: kept, and now and then printed. Local; rank 0 prints. */
void report_step(report *r, int64_t step, double loss, double norm, double lr);
/* Collectives per step, by kind and mesh dim. Local; rank 0 prints. */
void report_collectives(const report *r);
/* The losses as CSV, behind those of earlier runs up to `first`, and as an SVG picture of all; "": not. By rank 0. */
void report_files(const report *r, const char *csv, const char *svg);
void report_end(report *r);

#endif
