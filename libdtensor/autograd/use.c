/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses: leaves gathered together when a function begins, given up when it ends. Ops see handles that are outputs of one
 * node, whose inputs are the leaves; the tape keeps the leaves in their place. Backward gathers again what is needed of
 * them when it comes to the function's result, as copies of the leaves, and gives these up when it comes to the node:
 * that was made before all ops of the function, so it is passed after them. There gradients are converted together.
 *
 * Uses know the order in which they began, so that one can be gathered while the one before computes. */
#include "autograd/use.h"

#include <string.h>

#include "autograd/classes.h"

typedef struct entry {
    dt_tensor *x;                  /* hidden; does not insist on the value                                         */
    dt_tensor *leaf;               /* the handle whose `used` ops ask for                                          */
    const dt_spec *used, *grad;
    dt_work *ahead;                /* gathering, before it was asked for; NULL: none                               */
} entry;

struct dti_use {
    dt_context *ctx;
    dti_use_params params;
    int references, depth;
    int n, room;
    entry *entries;
    dti_use *before, *after;       /* in the order in which uses begin                                             */
    dti_use *outer;                /* that had begun when this one did; NULL: none                                 */
    bool recorded;                 /* has a node been made for what is under way?                                  */
    bool destroyed;
};

/* ---- lists of an entry's parts ----------------------------------------------------------------------------------- */

typedef struct lists {             /* one of each per entry, those not used NULL                                   */
    dt_tensor **from, **to;
    const dt_spec **specs;
    dt_work **work;
    int *which;
} lists;

static size_t lists_bytes(const dti_use *use) { return (size_t)use->n * (4 * sizeof(void *) + sizeof(int)); }

static bool lists_init(lists *l, dti_use *use)
{
    char *bytes = dti_context_borrow_zeros(use->ctx, lists_bytes(use));
    if (!bytes) return false;
    size_t step = (size_t)use->n * sizeof(void *);
    *l = (lists){ (void *)bytes, (void *)(bytes + step), (void *)(bytes + 2 * step), (void *)(bytes + 3 * step),
                  (void *)(bytes + 4 * step) };
    return true;
}

static void lists_fini(lists *l, dti_use *use) { dti_context_give(use->ctx, l->from, lists_bytes(use)); }

/* ---- made and ended ---------------------------------------------------------------------------------------------- */

dti_use *dti_use_new(dt_context *ctx, const dti_use_params *params)
{
    dti_use *use = dti_context_borrow_zeros(ctx, sizeof *use);
    if (!use) return NULL;
    use->ctx = ctx;
    use->params = *params;
    use->references = 1;
    return use;
}

static dt_work *take_ahead(dti_tape_state *tape, entry *e)
{
    dt_work *work = e->ahead;
    if (work) tape->ahead--;
    e->ahead = NULL;
    return work;
}

static void drop_ahead(dti_use *use)
{
    for (int i = 0; i < use->n; i++) {
        dt_work *work = take_ahead(dti_tape_state_of(use->ctx), &use->entries[i]);
        if (work) dti_work_drop(work);
    }
}

void dti_uses_settle_ahead(dt_context *ctx)
{
    const dti_tape_state *tape = dti_tape_state_of(ctx);
    for (dti_use *use = tape && tape->ahead ? tape->first_use : NULL; use; use = use->after) drop_ahead(use);
}

static void end_entry(entry *e)
{
    e->x->body->kept--;
    dti_tensor_destroy(e->x);
}

static void leave_order(dti_use *use)
{
    dti_tape_state *tape = dti_tape_state_of(use->ctx);
    if (use->before) use->before->after = use->after;
    if (use->after) use->after->before = use->before;
    if (tape && tape->first_use == use) tape->first_use = use->after;
    if (tape && tape->last_use == use) tape->last_use = use->before;
    use->before = use->after = NULL;
}

void dti_use_destroy(dti_use *use)
{
    if (!use) return;
    drop_ahead(use);
    leave_order(use);
    use->destroyed = true;
    dti_use_release(use);
}

static bool make_room(dti_use *use)
{
    if (use->n < use->room) return true;
    int room = use->room ? 2 * use->room : 4;
    entry *more = dti_context_borrow(use->ctx, (size_t)room * sizeof *more);
    if (!more) return false;
    if (use->n) memcpy(more, use->entries, (size_t)use->n * sizeof *more);
    dti_context_give(use->ctx, use->entries, (size_t)use->room * sizeof *use->entries);
    use->entries = more;
    use->room = room;
    return true;
}

bool dti_use_add(dti_use *use, dt_tensor *x, const dt_spec *used, const dt_spec *grad)
{
    if (used->mesh != x->spec->mesh)
        return dti_fail(use->ctx, DT_ERR_PLACEMENT, "expected %s to be used on its own mesh %s, got %s on %s",
                        dt_spec_text(x->spec), dt_mesh_text(x->spec->mesh), dt_spec_text(used),
                        dt_mesh_text(used->mesh)), false;
    if (used == x->spec && !grad) return true;
    dt_tensor *kept = make_room(use) ? dti_tape_save(x) : NULL;
    if (!kept) return false;
    kept->body->kept++;
    use->entries[use->n++] = (entry){ .x = kept, .leaf = x, .used = used, .grad = grad };
    return true;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Behind those that have begun before it did for the first time. */
static void join_order(dti_use *use)
{
    dti_tape_state *tape = dti_tape_state_of(use->ctx);
    if (!tape || use->before || tape->first_use == use) return;
    use->before = tape->last_use;
    if (tape->last_use) tape->last_use->after = use;
    else tape->first_use = use;
    tape->last_use = use;
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

static dt_tensor *alias(const dt_tensor *x)
{
    return dti_tensor_new(x->spec, x->storage ? dti_storage_retain(x->storage) : NULL);
}

/* What is wanted of a use, not there and not on its way: in backward what somebody needs, else all. */
static bool lacks(const entry *e, bool backward)
{
    if (e->ahead || e->used == e->x->spec || dti_tensor_kept(e->x, e->used)) return false;
    return !backward || e->x->body->needs > 0;
}

static bool start_ahead(dti_use *use, bool backward)
{
    lists l;
    int n = 0;
    if (use->n == 0) return true;
    if (!lists_init(&l, use)) return false;
    for (int i = 0; i < use->n; i++) {
        if (!lacks(&use->entries[i], backward)) continue;
        l.from[n] = use->entries[i].x;
        l.specs[n] = use->entries[i].used;
        l.which[n++] = i;
    }
    bool started = n == 0 || dti_tensors_start(use->ctx, l.from, l.specs, n, l.work);
    for (int k = 0; k < n && started; k++) {
        use->entries[l.which[k]].ahead = l.work[k];
        dti_tape_state_of(use->ctx)->ahead++;
    }
    lists_fini(&l, use);
    return started;
}

static bool gather_ahead(const dti_use *use, bool backward)
{
    dti_use *next = backward ? use->before : use->after;
    for (int k = 0; k < use->params.prefetch && next; k++, next = backward ? next->before : next->after)
        if (!next->depth && !start_ahead(next, backward)) return false;
    return true;
}

/* Complete what is on its way, and what is lacking: to[i] is new, or NULL. */
static bool gather(dti_use *use, lists *l, bool backward)
{
    if (!start_ahead(use, backward)) return false;
    int n = 0;
    for (int i = 0; i < use->n; i++) {
        dt_work *work = take_ahead(dti_tape_state_of(use->ctx), &use->entries[i]);
        if (!work) continue;
        l->work[n] = work;
        l->which[n++] = i;
    }
    bool done = n == 0 || dti_tensors_finish(use->ctx, l->work, n, l->from);
    for (int k = 0; k < n && done; k++) l->to[l->which[k]] = l->from[k];
    return done;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static const dti_node_class use_class;

/* A gradient of a leaf that no backward has reduced yet, which goes along now: taken from the leaf. NULL: none. */
static dt_tensor *take_unreduced(const dti_edge *edge, const dt_spec *target)
{
    dti_node *leaf = edge->node;
    if (leaf->class != &dti_leaf_class || !leaf->state) return NULL;
    dt_tensor *before = leaf->state;
    if (before->spec->layout == target->layout) return NULL;
    leaf->state = NULL;
    return before;
}

static dt_tensor *as_dtype(dt_tensor *grad, dt_dtype dtype)
{
    const dt_spec *spec = dti_spec_as_dtype(grad->spec, dtype);
    return spec == grad->spec ? grad : spec ? dti_tensor_to(grad, spec) : NULL;
}

/* A leaf's hooks have seen what it has, and are to see no more than the rest: it is reduced by itself. */
static bool reduce_hooked(const dti_edge *edge, const dt_spec *target)
{
    dt_tensor *before = edge->node->hooks ? take_unreduced(edge, target) : NULL;
    if (!before) return true;
    dt_tensor *reduced = dti_tensor_to(before, target);
    dti_tensor_destroy(before);
    edge->node->state = reduced ? dti_tensor_hide(dti_tensor_share(reduced)) : NULL;
    return edge->node->state != NULL;
}

/* The sum with what had not been reduced before, as it is to travel; its dtype is the leaf's then. */
static dt_tensor *travelling(const dti_use *use, const dti_edge *edge, const entry *e, dt_tensor *grad,
                             const dt_spec *target)
{
    if (!reduce_hooked(edge, target)) return NULL;
    dt_tensor *before = take_unreduced(edge, target);
    if (!before) return as_dtype(grad, use->params.reduce);
    grad = as_dtype(grad, dt_spec_dtype(e->x->spec));
    dt_tensor *sum = grad ? dti_gradient_add(before, grad) : NULL;
    dti_tensor_destroy(before);
    return sum;
}

static bool reduce(dti_node *node, dti_use *use, dt_tensor *const *grad, lists *l, dt_tensor **in_grad)
{
    bool waits = dti_scope_flags(use->ctx) & DT_SCOPE_NO_REDUCE;
    int n = 0;
    for (int i = 0; i < node->out_count; i++) {
        const entry *e = &use->entries[i];
        if (!grad[i]) continue;
        const dt_spec *source = e->grad ? e->grad : e->x->spec;
        const dt_spec *target = dti_gradient_through_spec(grad[i]->spec, source, e->used, 0);
        if (!target) return false;
        dt_tensor *g = waits ? as_dtype(grad[i], dt_spec_dtype(e->x->spec))
                             : travelling(use, &node->in[i], e, grad[i], target);
        if (!g) return false;
        l->from[n] = g;
        l->specs[n] = waits ? g->spec : target;
        l->which[n++] = i;
    }
    if (n && !dti_tensors_to(use->ctx, l->from, l->specs, n, l->to)) return false;
    for (int k = 0; k < n; k++) in_grad[l->which[k]] = l->to[k];
    return true;
}

static bool backward(dti_node *node, dt_tensor *const *grad, uint32_t wanted, dt_tensor **in_grad)
{
    dti_use *use = node->state;
    lists l;
    (void)wanted;
    if (!lists_init(&l, use)) return false;
    bool done = reduce(node, use, grad, &l, in_grad);
    lists_fini(&l, use);
    return done;
}

/* Copies that backward made, or a function that was run again, go when nobody needs them. */
static void release_node(dti_node *node)
{
    dti_use *use = node->state;
    node->state = NULL;
    for (int i = 0; i < use->n; i++)
        if (use->entries[i].x->body->needs == 0) dti_tensor_drop_copies(use->entries[i].x);
    dti_use_release(use);
}

static dt_tensor *source(const dti_node *node, int output)
{
    const dti_use *use = node->state;
    if (!use || use->params.keep || (dti_scope_flags(node->ctx) & DT_SCOPE_KEEP_GATHERED)) return NULL;
    return use->entries[output].x;
}

static const dti_node_class use_class = { "the use of parameters", backward, release_node, false, source };

/* Backward has come to the function's result. */
static dt_tensor *gather_again(dt_tensor *grad, void *arg)
{
    dti_use *use = arg;
    lists l;
    (void)grad;
    if (use->destroyed || !lists_init(&l, use)) return NULL;
    bool done = gather(use, &l, true);
    for (int i = 0; i < use->n && done; i++)
        if (l.to[i]) dti_tensor_add_copy(use->entries[i].x, l.to[i]);
    lists_fini(&l, use);
    if (done) gather_ahead(use, true);
    return NULL;
}

static void release_hook(void *arg) { dti_use_release(arg); }

/* ---- front ------------------------------------------------------------------------------------------------------- */

/* Handles that ops are to see, each with its output of one node; hidden, the use's own. */
static bool show(dti_use *use, lists *l)
{
    bool shown = true;
    for (int i = 0; i < use->n; i++) {
        entry *e = &use->entries[i];
        if (l->to[i]) continue;
        dt_tensor *copy = dti_tensor_kept(e->x, e->used);
        l->to[i] = alias(copy ? copy : e->x);
        if (!l->to[i]) return false;
    }
    for (int i = 0; i < use->n; i++) l->from[i] = use->entries[i].x;
    if (!dti_tape_leaves_stand(use->ctx, l->from, use->n)) return false;
    use->recorded = dti_tape_records(l->from, use->n);
    if (use->recorded) {
        use->references++;
        shown = dti_tape_record(use->ctx, &use_class, use, l->from, use->n, l->to, use->n);
    }
    for (int i = 0; i < use->n && shown; i++) use->entries[i].leaf->used = dti_tensor_hide(l->to[i]);
    return shown;
}

bool dti_use_begin(dti_use *use)
{
    lists l;
    if (dti_failed(use->ctx)) return false;
    if (use->depth > 0 || use->n == 0) return use->depth++, true;
    if (!lists_init(&l, use)) return false;
    bool walking = dti_tape_is_walking(use->ctx);
    if (!walking) join_order(use);
    bool begun = gather(use, &l, false) && show(use, &l);
    lists_fini(&l, use);
    if (!begun) return false;
    use->depth = 1;
    use->outer = dti_tape_state_of(use->ctx)->use;
    dti_tape_state_of(use->ctx)->use = use;
    if (walking || gather_ahead(use, false)) return true;
    dti_use_end(use, NULL);
    return false;
}

/* A function that backward runs again is passed at once: what was gathered for it stays. */
static void give_up(dti_use *use)
{
    bool walking = dti_tape_is_walking(use->ctx);
    for (int i = 0; i < use->n; i++) {
        entry *e = &use->entries[i];
        dt_tensor *shown = e->leaf->used;
        e->leaf->used = NULL;
        bool keeps = walking && use->recorded && e->used != e->x->spec && !dti_tensor_kept(e->x, e->used);
        dt_tensor *copy = keeps ? alias(shown) : NULL;
        if (copy) dti_tensor_add_copy(e->x, copy);
        dti_tensor_destroy(shown);
    }
}

dt_tensor *dti_use_end(dti_use *use, dt_tensor *out)
{
    if (--use->depth > 0 || use->n == 0) return out;
    dti_tape_state_of(use->ctx)->use = use->outer;
    give_up(use);
    if (!use->recorded || !out || !out->body || !out->body->node) return out;
    use->references++;
    return dti_tape_hook(out, gather_again, use, release_hook) ? out : NULL;
}

/* ---- functions that backward runs again -------------------------------------------------------------------------- */

static bool is_taken(const dti_use *use)
{
    for (int i = 0; i < use->n; i++)
        if (use->entries[i].leaf->used->taken) return true;
    return false;
}

void dti_uses_watch(dt_context *ctx)
{
    for (dti_use *use = dti_tape_state_of(ctx)->use; use; use = use->outer)
        for (int i = 0; i < use->n; i++) use->entries[i].leaf->used->taken = false;
}

int dti_uses_taken(dt_context *ctx, dti_use **uses)
{
    int n = 0;
    for (dti_use *use = dti_tape_state_of(ctx)->use; use; use = use->outer) {
        if (!is_taken(use)) continue;
        if (uses) uses[n] = use;
        use->references += uses != NULL;
        n++;
    }
    return n;
}

void dti_use_release(dti_use *use)
{
    if (--use->references) return;
    for (int i = 0; i < use->n; i++) end_entry(&use->entries[i]);
    dti_context_give(use->ctx, use->entries, (size_t)use->room * sizeof *use->entries);
    dti_context_give(use->ctx, use, sizeof *use);
}
