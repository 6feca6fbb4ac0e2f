/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of placements. The model says nothing of ranks; these say all of it. */
#include "place.h"

#include <string.h>

/* ---- tensor parallelism, and with it sequence parallelism -------------------------------------------------------- */

static const dt_style_row tp_rows[] = {
    { "embed", &dt_style_vocab, NULL, NULL },
    { "layers.*.attn", &dt_style_io, "R", NULL },                    /* one gradient for q, k and v                */
    { "layers.*.attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "layers.*.attn.wo", &dt_style_rowwise, NULL, NULL },           /* all-reduce                                 */
    { "layers.*.mlp", &dt_style_io, "R", NULL },
    { "layers.*.mlp.gate", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.up", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.down", &dt_style_rowwise, NULL, NULL },          /* all-reduce                                 */
    { "head", &dt_style_colwise, NULL, NULL },
};

static const dt_style_row sp_rows[] = {
    { "embed", &dt_style_vocab, NULL, "S(1)" },                      /* reduce-scatter                             */
    { "layers.*.*_norm", &dt_style_sequence, NULL, NULL },
    { "layers.*.attn", &dt_style_io, "R", NULL },                    /* one all-gather for q, k and v              */
    { "layers.*.attn.w[qkv]", &dt_style_colwise, NULL, NULL },
    { "layers.*.attn.wo", &dt_style_rowwise, NULL, "S(1)" },         /* reduce-scatter                             */
    { "layers.*.mlp", &dt_style_io, "R", NULL },                     /* one all-gather for gate and up             */
    { "layers.*.mlp.gate", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.up", &dt_style_colwise, NULL, NULL },
    { "layers.*.mlp.down", &dt_style_rowwise, NULL, "S(1)" },        /* reduce-scatter                             */
    { "norm", &dt_style_sequence, NULL, NULL },
    { "head", &dt_style_colwise, NULL, NULL },                       /* all-gather                                 */
};

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const struct { const char *word; placement is; } words[] = {
    { "dp", { 0 } },
    { "tp", { .tp = true } },
    { "sp", { .sp = true } },
    { "zero1", { .zero = 1 } },
    { "zero2", { .zero = 2 } },
    { "fsdp", { .zero = 3 } },
    { "hsdp", { .zero = 3, .hsdp = true } },
};

static bool add_word(const char *word, size_t n, placement *p)
{
    for (int i = 0; i < DT_COUNT(words); i++) {
        if (strlen(words[i].word) != n || strncmp(words[i].word, word, n) != 0) continue;
        p->tp |= words[i].is.tp;
        p->sp |= words[i].is.sp;
        p->hsdp |= words[i].is.hsdp;
        if (words[i].is.zero) p->zero = words[i].is.zero;
        return true;
    }
    return false;
}

bool placement_read(dt_context *ctx, const char *style, placement *p)
{
    *p = (placement){ 0 };
    for (const char *at = style; *at;) {
        size_t n = strcspn(at, "+");
        if (!add_word(at, n, p)) {
            dt_context_fail(ctx, DT_ERR_ARG, "--style=%s: expected words of dp, tp, sp, zero1, zero2, fsdp and hsdp, "
                            "joined by +; got \"%.*s\"", style, (int)n, at);
            return false;
        }
        at += n + (at[n] == '+');
    }
    return true;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

const char *placement_mesh(const placement *p) { return p->hsdp ? "replicate,dp,tp" : "dp,tp"; }
const char *placement_batch(const placement *p) { return p->hsdp ? "replicate:S(0),dp:S(0)" : "dp:S(0)"; }

dt_status placement_apply(const placement *p, dt_module *model, dt_dtype compute)
{
    const dt_fully_shard_params shard = { .compute = compute, .zero = p->zero };
    if (p->sp) dt_parallelize(model, "tp", sp_rows, DT_COUNT(sp_rows));
    else if (p->tp) dt_parallelize(model, "tp", tp_rows, DT_COUNT(tp_rows));
    if (p->zero) {
        dt_fully_shard(model, "layers.*", "dp", &shard);
        dt_fully_shard(model, "", "dp", &shard);
    } else if (compute == DT_BF16) {
        dt_place(model, "**", "*", "bf16@*");
    }
    return dt_context_status(dt_module_context(model));
}
