/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions whose loops become vectors, compiled for several machines, of which the loader takes one; with sanitizers
 * for the baseline alone. */
#ifndef DTI_CLONES_H
#define DTI_CLONES_H

#ifdef DTI_CLONED
#define DTI_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DTI_CLONES
#endif

#endif
