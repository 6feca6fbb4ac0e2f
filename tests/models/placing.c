/* SPDX-License-Identifier: Apache-2.0 */
#include "models/placing.h"

/* ---- styles ------------------------------------------------------------------------------------------------------ */

const dt_style_row tp_rows[TP_ROWS] = {
    { "embed", &dt_style_vocab, NULL, NULL },
    { "layers.*.attn", &dt_style_io, "R", NULL },
    { "layers.*.attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "layers.*.attn.wo", &dt_style_rowwise, NULL, NULL },
    { "layers.*.mlp", &dt_style_io, "R", NULL },
    { "layers.*.mlp.gate", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.up", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.down", &dt_style_rowwise, NULL, NULL },
    { "head", &dt_style_colwise, NULL, NULL },
};

const dt_style_row sp_rows[SP_ROWS] = {
    { "embed", &dt_style_vocab, NULL, "S(1)" },
    { "layers.*.*_norm", &dt_style_sequence, NULL, NULL },
    { "layers.*.attn", &dt_style_io, "R", NULL },
    { "layers.*.attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "layers.*.attn.wo", &dt_style_rowwise, NULL, "S(1)" },
    { "layers.*.mlp", &dt_style_io, "R", NULL },
    { "layers.*.mlp.gate", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.up", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.down", &dt_style_rowwise, NULL, "S(1)" },
    { "norm", &dt_style_sequence, NULL, NULL },
    { "head", &dt_style_colwise, NULL, NULL },
};

const dt_style_row gpt_rows[GPT_ROWS] = {
    { "embed", &dt_style_vocab, NULL, "S(1)" },
    { "drop", &dt_style_sequence, NULL, NULL },
    { "layers.*.*_norm", &dt_style_sequence, NULL, NULL },
    { "layers.*.attn", &dt_style_io, "R", NULL },
    { "layers.*.attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "layers.*.attn.wo", &dt_style_rowwise, NULL, "S(1)" },
    { "layers.*.mlp", &dt_style_io, "R", NULL },
    { "layers.*.mlp.up", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.down", &dt_style_rowwise, NULL, "S(1)" },
    { "layers.*.drop", &dt_style_sequence, NULL, NULL },
    { "norm", &dt_style_sequence, NULL, NULL },
    { "head", &dt_style_colwise, NULL, NULL },
};

/* ---- models ------------------------------------------------------------------------------------------------------ */

static void shard(dt_module *model, const placing *p)
{
    if (!p->sharded) return;
    dt_fully_shard(model, "layers.*", p->sharded, &p->shard);
    dt_fully_shard(model, "", p->sharded, &p->shard);
}

dt_module *placing_apply(dt_module *model, const placing *p)
{
    if (p->shard_first) shard(model, p);
    if (p->rows) dt_parallelize(model, "tp", p->rows, p->row_count);
    if (!p->shard_first) shard(model, p);
    if (p->recompute) dt_module_recompute(model, "layers.*");
    return model;
}
