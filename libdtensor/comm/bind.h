/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPUs on which this process may run, threads kept on some of them, and how many threads kernels may start. */
#ifndef DTI_BIND_H
#define DTI_BIND_H

enum { DTI_MAX_CPUS = 1024 };

typedef struct dti_cpus { int n, id[DTI_MAX_CPUS]; } dti_cpus; /* those of one core together, cores of one socket too */

/* CPUs of the affinity mask of this thread; n is 0 where the system does not say. */
void dti_cpus_read(dti_cpus *cpus);
/* Keep this thread, and threads that it makes, on the CPUs of part i of n: n is at most their number. Where the system
 * refuses, it stays as it is. */
void dti_bind(const dti_cpus *cpus, int i, int n);
/* Tell OpenMP, where the program has it, how many threads this thread may use: the CPUs over n ranks, at least 1. What
 * the user says in OMP_NUM_THREADS stands. */
void dti_share_cpus(const dti_cpus *cpus, int n);

#endif
