/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout, keyed by where it stands and when. */
#include "nn/layers.h"

typedef struct dropout { double p; } dropout;

static void dropout_init(dt_module *self, const void *params)
{
    dropout *d = dt_module_state(self);
    d->p = *(const double *)params;
    if (!(d->p >= 0 && d->p < 1))
        dt_context_fail(dt_module_context(self), DT_ERR_ARG, "dropout: expected p in [0, 1), got %g", d->p);
}

static dt_tensor *dropout_forward(dt_module *self, dt_tensor *const *in)
{
    const dropout *d = dt_module_state(self);
    return dt_module_is_training(self) && d->p > 0 ? dt_dropout(in[0], d->p, dt_module_key(self, 0)) : in[0];
}

static const dt_module_type dropout_type = {
    .name = "dropout", .state_bytes = sizeof(dropout), .init = dropout_init, .forward = dropout_forward,
};

dt_module *dt_nn_dropout(dt_mesh *mesh, double p) { return dt_module_create(mesh, &dropout_type, &p); }
