/* SPDX-License-Identifier: Apache-2.0
 *
 * An explanation as text: sections of aligned rows. It finds nothing out. */
#include <stdlib.h>

#include "ops/explain.h"

static const char *operand_name(const dti_explanation *e, int i) { return dti_rule_name(&e->asking.rule, i); }

/* "R" where there is nothing to say. */
static const char *placements_of(const dt_spec *spec)
{
    return *dt_spec_placements(spec) ? dt_spec_placements(spec) : "R";
}

/* ---- sections: cells ended by tabs and new lines ----------------------------------------------------------------- */

static void put_attributes(dti_pen *cells, const dti_explanation *e)
{
    for (int i = 0; i < e->op->attribute_count; i++) {
        dti_put(cells, "attribute\t");
        dti_put_attribute(cells, &e->op->attributes[i], e->attributes.values, e->by_sign);
        dti_put(cells, "\n");
    }
}

static void put_op(dti_pen *cells, const void *arg)
{
    const dti_explanation *e = arg;
    dti_put(cells, "op\t");
    dti_put_head(cells, &e->asking.rule);
    dti_put(cells, "\nrule\t");
    dti_put_rule(cells, &e->asking.rule);
    dti_put(cells, "\npolynomial\t");
    dti_put_polynomial(cells, &e->asking.rule);
    dti_put(cells, "\n");
    put_attributes(cells, e);
    dti_put(cells, "mesh\t%s\n", dt_mesh_text(e->mesh));
}

/* "all_gather tp", "reduce_scatter tp, all_gather dp"; "-": nothing. */
static void put_moves(dti_pen *cells, const dt_plan *const *plans)
{
    int n = 0;
    for (int k = 0; k < DTI_MOVES; k++)
        for (int i = 0; i < dt_plan_step_count(plans[k]); i++, n++) {
            dt_plan_step step = dt_plan_step_at(plans[k], i);
            dti_put(cells, "%s%s %s", n ? ", " : "", dt_comm_kind_text(step.kind), step.dims);
        }
    if (n == 0) dti_put(cells, "-");
}

static void put_operand(dti_pen *cells, const dti_explanation *e, int i)
{
    dti_put(cells, "%s\t", operand_name(e, i));
    if (!e->given[i]) {
        dti_put(cells, "absent\n");
        return;
    }
    dti_put(cells, "%s\t%s\t%lld\t", dt_spec_text(e->given[i]), dt_spec_text(e->way.answer->used[i]),
            (long long)e->way.moved[i]);
    put_moves(cells, e->way.plans[i]);
    dti_put(cells, "\n");
}

static void put_operand_rows(dti_pen *cells, const void *arg)
{
    const dti_explanation *e = arg;
    dti_put(cells, "operand\tgiven\tused\tbytes\tmoves\n");
    for (int i = 0; i < e->n; i++) put_operand(cells, e, i);
}

static void put_results(dti_pen *cells, const void *arg)
{
    const dti_explanation *e = arg;
    if (e->way.pulls) dti_put(cells, "result\tpulled\tbytes\tmoves\n");
    for (int i = 0; i < e->asking.rule.result_count; i++) {
        const char *which = i < dti_rule_results(&e->asking.rule) ? "result" : "kept";
        dti_put(cells, "%s\t%s", e->way.pulls ? "" : which, dt_spec_text(e->way.answer->result[i]));
        if (e->way.pulls) {
            dti_put(cells, "\t%lld\t", (long long)e->way.moved[DTI_PULLS + i]);
            put_moves(cells, e->way.plans[DTI_PULLS + i]);
        }
        dti_put(cells, "\n");
    }
}

static void put_cost(dti_pen *cells, const void *arg)
{
    const dti_way *way = &((const dti_explanation *)arg)->way;
    if (way->calls)
        dti_put(cells, "parts\t%lld\treceived by the busiest rank in %lld calls, statistics of rows\n",
                (long long)way->statistics, (long long)way->calls);
    dti_put(cells, "bytes\t%lld\treceived by the busiest rank%s\n", (long long)way->bytes,
            way->calls ? ", of operands and parts" : "");
    dti_put(cells, "time\t%.3f\tus, moves and work, by the formulas that choose\n", (double)way->answer->ns / 1e3);
}

static void put_reason(const dti_reason *reason, void *cells)
{
    dti_put(cells, "%s\t%s\t%s\n", reason->dim, reason->takes, reason->why);
    if (*reason->given) dti_put(cells, "\tnot %s\t%s\n", reason->given, reason->refusal);
}

static void put_why(dti_pen *cells, const void *arg)
{
    dti_put(cells, "along\ttakes\twhy\n");
    dti_explain_along(arg, put_reason, cells);
}

static void put_other(dti_pen *cells, const dti_explanation *e, const dti_way *way)
{
    dti_put(cells, "%lld\t%.3f", (long long)way->bytes, (double)way->answer->ns / 1e3);
    for (int i = 0; i < e->n; i++)
        if (e->given[i]) dti_put(cells, "\t%s", placements_of(way->answer->used[i]));
    for (int i = 0; i < dti_rule_results(&e->asking.rule); i++)
        dti_put(cells, "\t%s", placements_of(way->answer->result[i]));
    dti_put(cells, "\n");
}

static void put_others(dti_pen *cells, const void *arg)
{
    const dti_explanation *e = arg;
    if (e->other_count == 0) {
        dti_put(cells, "no alternatives\n");
        return;
    }
    dti_put(cells, "bytes\tus");
    for (int i = 0; i < e->n; i++)
        if (e->given[i]) dti_put(cells, "\t%s", operand_name(e, i));
    for (int i = 0; i < dti_rule_results(&e->asking.rule); i++) dti_put(cells, "\tresult");
    dti_put(cells, "\n");
    for (int i = 0; i < e->other_count; i++) put_other(cells, e, &e->others[i]);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

typedef struct section { dti_put_fn put; const char *columns; } section;

static const section sections[] = {
    { put_op, "ll" }, { put_operand_rows, "lllrl" }, { put_results, "llrl" }, { put_cost, "lrl" }, { put_why, "lll" },
    { put_others, "rrllllllllllllllllllllllllllllll" },
};

typedef struct texts { char *cells[DT_COUNT(sections)]; } texts;

static void put_sections(dti_pen *pen, const void *arg)
{
    const texts *t = arg;
    for (int i = 0; i < DT_COUNT(sections); i++) {
        if (i) dti_put(pen, "\n");
        dti_put_columns(pen, t->cells[i], sections[i].columns);
    }
}

char *dti_explain_text(const dti_explanation *e)
{
    texts t;
    bool made = true;
    for (int i = 0; i < DT_COUNT(sections); i++) made &= (t.cells[i] = dti_written(sections[i].put, e)) != NULL;
    char *text = made ? dti_written(put_sections, &t) : NULL;
    for (int i = 0; i < DT_COUNT(sections); i++) free(t.cells[i]);
    return text;
}
