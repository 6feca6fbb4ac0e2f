/* SPDX-License-Identifier: Apache-2.0
 *
 * What every backend of communication must do, through its table of functions only. A backend's test has a way to
 * launch ranks and calls each part with it. */
#ifndef TESTS_COMM_CONFORMANCE_H
#define TESTS_COMM_CONFORMANCE_H

#include <dtensor/context.h>

/* As dt_launch_threads: fn on n ranks, the first error's status and message. */
typedef dt_status (*conformance_launch)(int n, dt_rank_fn fn, void *arg, char *error, size_t n_bytes);

void conformance_groups(conformance_launch launch);
void conformance_copies(conformance_launch launch);
void conformance_dtypes(conformance_launch launch);
void conformance_combines(conformance_launch launch);
void conformance_strides(conformance_launch launch);
void conformance_in_place(conformance_launch launch);
void conformance_all_reduces(conformance_launch launch);
void conformance_lists(conformance_launch launch);
void conformance_withdrawn(conformance_launch launch);
void conformance_large(conformance_launch launch);
void conformance_in_flight(conformance_launch launch);
void conformance_barriers(conformance_launch launch);
void conformance_releases(conformance_launch launch);
void conformance_broadcasts(conformance_launch launch);
void conformance_permutes(conformance_launch launch);
void conformance_sends(conformance_launch launch);
void conformance_senders_do_not_wait(conformance_launch launch);

#endif
