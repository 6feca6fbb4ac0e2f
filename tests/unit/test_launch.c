/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching: ranks, options, exit statuses and what is printed; and faults, over and over: whatever a rank does, the
 * others end within their time-out, each with the status that says what happened. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "comm/bind.h"
#include "comm/comm.h"
#include "suite.h"

enum { RANKS = 3, MAX_RANKS = 16, TEXT = 4096 };

static void pause_us(long us) { nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL); }

static dti_group *whole(dt_context *ctx)
{
    static const int ranks[MAX_RANKS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    dti_comm *comm = dti_comm_of(ctx);
    return comm ? comm->ops->group(comm, ranks, dt_rank_count(ctx)) : NULL;
}

static dt_status meet(dti_group *group, uint64_t hash, const char *text)
{
    return group ? group->comm->ops->barrier(group, (dti_call){ hash, text }) : DT_ERR_STATE;
}

/* ---- ranks in this process --------------------------------------------------------------------------------------- */

typedef struct seen { atomic_int calls, sum; } seen;

static dt_status count(dt_context *ctx, void *arg)
{
    seen *s = arg;
    atomic_fetch_add(&s->calls, 1);
    atomic_fetch_add(&s->sum, dt_rank(ctx));
    expect(!ctx->dry && (dti_comm_of(ctx) != NULL) == (dt_rank_count(ctx) > 1), "rank %d", dt_rank(ctx));
    return DT_OK;
}

static void every_rank_runs_once(void)
{
    char error[TEXT] = "?";
    for (int n = 1; n <= MAX_RANKS; n++) {
        seen s = { 0 };
        expect(dt_launch_threads(n, count, &s, error, sizeof error) == DT_OK && !*error, "%s", error);
        expect(s.calls == n && s.sum == n * (n - 1) / 2, "%d ranks: %d calls, sum %d", n, s.calls, s.sum);
    }
    seen s = { 0 };
    expect(dt_launch_threads(2, count, &s, NULL, 0) == DT_OK && s.calls == 2, "without room for an error");
}

/* ---- threads of kernels ------------------------------------------------------------------------------------------ *
 * This program has an OpenMP, or what looks like one; all other tests have none and link.                            */

static _Thread_local int omp_threads;

void omp_set_num_threads(int n);
void omp_set_num_threads(int n) { omp_threads = n; }

static dt_status see_threads(dt_context *ctx, void *arg)
{
    const int *wanted = arg;
    expect(omp_threads == *wanted, "rank %d of %d: %d threads, want %d", dt_rank(ctx), dt_rank_count(ctx), omp_threads,
           *wanted);
    return DT_OK;
}

static void ranks_share_the_cpus(void)
{
    char error[TEXT];
    dti_cpus cpus;
    dti_cpus_read(&cpus);
    unsetenv("OMP_NUM_THREADS");
    for (int n = 1; n <= MAX_RANKS; n++) {
        int wanted = cpus.n / n > 1 ? cpus.n / n : 1, none = 0;
        expect(dt_launch_threads(n, see_threads, &wanted, error, sizeof error) == DT_OK, "%s", error);
        setenv("OMP_NUM_THREADS", "3", 1);
        expect(dt_launch_threads(n, see_threads, &none, error, sizeof error) == DT_OK, "%s", error);
        unsetenv("OMP_NUM_THREADS");
    }
}

static void arguments_are_checked(void)
{
    char error[TEXT];
    seen s = { 0 };
    expect(dt_launch_threads(0, count, &s, error, sizeof error) == DT_ERR_ARG && strstr(error, "got 0"), "%s", error);
    expect(dt_launch_threads(-3, count, &s, error, 10) == DT_ERR_ARG && strlen(error) == 9, "%s", error);
    expect(dt_launch_threads(2, NULL, NULL, error, sizeof error) == DT_ERR_ARG, "%s", error);
    expect(s.calls == 0, "%d calls", s.calls);
}

static dt_status return_error(dt_context *ctx, void *arg)
{
    (void)arg;
    return dt_rank(ctx) == 1 ? DT_ERR_IO : DT_OK;
}

static dt_status fail_alike(dt_context *ctx, void *arg)
{
    (void)arg;
    return dt_context_fail(ctx, DT_ERR_SHAPE, "%d rows", 5);
}

static dt_status swallow_error(dt_context *ctx, void *arg)
{
    fail_alike(ctx, arg);
    return DT_OK;
}

static dt_status use_stack(dt_context *ctx, void *arg)
{
    volatile char room[7 << 20];
    (void)arg;
    for (size_t i = 0; i < sizeof room; i += 4096) room[i] = (char)i;
    return room[4096] == 0 ? dt_context_status(ctx) : DT_ERR_STATE;
}

static void the_first_error_is_reported(void)
{
    char error[TEXT];
    expect(dt_launch_threads(3, return_error, NULL, error, sizeof error) == DT_ERR_IO, "%s", error);
    expect(strncmp(error, "rank 1: the program returned an error", 37) == 0, "%s", error);
    expect(dt_launch_threads(3, fail_alike, NULL, error, sizeof error) == DT_ERR_SHAPE, "%s", error);
    expect(strcmp(error, "5 rows") == 0, "all say the same, so no rank is named: %s", error);
    expect(dt_launch_threads(1, swallow_error, NULL, error, sizeof error) == DT_ERR_SHAPE, "%s", error);
    expect(dt_launch_threads(2, use_stack, NULL, error, sizeof error) == DT_OK, "%s", error);
}

/* ---- dt_launch in a process of its own --------------------------------------------------------------------------- */

typedef struct launched { int status; char out[TEXT], err[TEXT]; } launched;

static void read_all(int fd, char text[TEXT])
{
    size_t n = 0;
    for (ssize_t more; n < TEXT - 1 && (more = read(fd, text + n, TEXT - 1 - n)) > 0; n += (size_t)more) {}
    text[n] = '\0';
    close(fd);
}

static int child(const char *const *words, dt_rank_fn fn)
{
    char name[] = "/bin/program", *line[16] = { name }, **argv = line;
    int argc = 1;
    for (; *words; words++) line[argc++] = (char *)(uintptr_t)*words;
    int status = dt_launch(&argc, &argv, fn, NULL);
    for (int i = 1; i < argc && status == 0; i++) printf("left %s\n", argv[i]);
    fflush(NULL);
    return status;
}

static launched launch(const char *const *words, dt_rank_fn fn)
{
    int out[2], err[2], status = -1;
    launched l = { .status = -1 };
    fflush(NULL);
    if (pipe(out) != 0 || pipe(err) != 0) return l;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        _exit(child(words, fn));
    }
    close(out[1]);
    close(err[1]);
    read_all(out[0], l.out);
    read_all(err[0], l.err);
    waitpid(pid, &status, 0);
    l.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return l;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void expect_launch(const char *const *words, dt_rank_fn fn, int status, const char *out, const char *err)
{
    launched l = launch(words, fn);
    expect(l.status == status, "%s: exit status %d, want %d: %s", words[0], l.status, status, l.err);
    expect(strstr(l.out, out) != NULL && (*out || !*l.out), "%s: stdout is \"%s\", want \"%s\"", words[0], l.out, out);
    expect(strstr(l.err, err) != NULL && (*err || !*l.err), "%s: stderr is \"%s\", want \"%s\"", words[0], l.err, err);
    const char *end = strchr(l.err, '\n');
    expect(!*err || (end && !end[1]), "%s: stderr is not one line: %s", words[0], l.err);
}

/* A program with one option; prints what it sees on rank 0. */
static dt_status program(dt_context *ctx, void *arg)
{
    (void)arg;
    int64_t steps = dt_option_int(ctx, "steps", 3, "how many steps");
    if (!dt_options_done(ctx)) return dt_context_status(ctx);
    if (!ctx->dry && dt_rank_count(ctx) > 1) meet(whole(ctx), 1, "barrier");
    if (dt_rank(ctx) == dt_rank_count(ctx) - 1 && steps == 13) dt_context_fail(ctx, DT_ERR_IO, "no step 13");
    dt_print(ctx, "%d ranks%s, %lld steps\n", dt_rank_count(ctx), ctx->dry ? " dry" : "", (long long)steps);
    return dt_context_status(ctx);
}

static void options_say_how_to_run(void)
{
    expect_launch(WORDS("--steps=5"), program, 0, "1 ranks, 5 steps\nleft --steps=5\n", "");
    expect_launch(WORDS("--dt-ranks=3", "file"), program, 0, "3 ranks, 3 steps\nleft file\n", "");
    expect_launch(WORDS("--dt-mesh=a=2,b=3"), program, 0, "6 ranks, 3 steps\n", "");
    expect_launch(WORDS("--dt-mesh=a=2,b"), program, 0, "1 ranks, 3 steps\n", "");
    expect_launch(WORDS("--dt-mesh=a=2", "--dt-ranks=4"), program, 0, "4 ranks, 3 steps\n", "");
    expect_launch(WORDS("--dt-dry=4096", "--dt-ranks=2"), program, 0, "4096 ranks dry, 3 steps\n", "");
    expect_launch(WORDS("--dt-ranks=2", "--dt-bind=false", "--dt-timeout=9.5"), program, 0, "2 ranks", "");
    expect_launch(WORDS("--dt-ranks=2", "--dt-bind", "--dt-backend=threads"), program, 0, "2 ranks", "");
    setenv("DT_RANKS", "2", 1);
    expect_launch(WORDS("x"), program, 0, "2 ranks, 3 steps\n", "");
    expect_launch(WORDS("--dt-ranks=5"), program, 0, "5 ranks, 3 steps\n", "");
    unsetenv("DT_RANKS");
}

static void errors_have_a_line_and_a_status(void)
{
    expect_launch(WORDS("--dt-ranks=3", "--steps=13"), program, 1, "3 ranks", "program: rank 2: no step 13\n");
    expect_launch(WORDS("--steps=13"), program, 1, "", "program: no step 13\n");
    expect_launch(WORDS("--dt-backend=mpi"), program, 1, "", "program: backend mpi: this build has threads only\n");
    expect_launch(WORDS("--dt-backend=smoke"), program, 2, "", "expected threads, mpi or nccl\n");
    expect_launch(WORDS("--dt-ranks=0"), program, 2, "", "program: --dt-ranks=0: expected an integer of at least 1\n");
    expect_launch(WORDS("--dt-ranks=3000000000"), program, 2, "", "at most 2147483647");
    expect_launch(WORDS("--dt-ranks=x"), program, 2, "", "--dt-ranks=x");
    expect_launch(WORDS("--dt-dry=-1"), program, 2, "", "--dt-dry=-1");
    expect_launch(WORDS("--dt-timeout=0"), program, 2, "", "--dt-timeout=0: expected a number above 0");
    expect_launch(WORDS("--dt-bind=perhaps"), program, 2, "", "expected true or false");
    expect_launch(WORDS("--dt-what=1"), program, 2, "", "unknown option --dt-what");
    expect_launch(WORDS("--dt-ranks=4", "--what=1"), program, 2, "", "unknown option --what; known: --steps\n");
    expect_launch(WORDS("--dt-ranks=4", "--steps=x"), program, 2, "", "program: --steps=x: expected an integer\n");
    expect_launch(WORDS("x"), NULL, 1, "", "dtensor: launch: expected a command line and a function\n");
}

static void help_is_printed(void)
{
    expect_launch(WORDS("--help"), program, 0, "how many steps (default 3)\n", "");
    expect_launch(WORDS("--dt-ranks=3", "--help"), program, 0, "--dt-timeout=FLOAT", "");
    expect_launch(WORDS("--dt-dry=3", "--help"), program, 0, "[DT_TIMEOUT] (default 300)", "");
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

typedef struct fault {
    int trial;
    atomic_int gone;               /* ranks that are through                                                       */
    dt_status status[RANKS];
    char error[RANKS][256];
} fault;

static void note(fault *f, const dt_context *ctx)
{
    f->status[dt_rank(ctx)] = dt_context_status(ctx);
    snprintf(f->error[dt_rank(ctx)], sizeof f->error[0], "%s", dt_context_error(ctx));
    atomic_fetch_add(&f->gone, 1);
}

/* Ranks come in every order, near to each other and not. */
static void stagger(const fault *f, const dt_context *ctx)
{
    int turn = (f->trial + dt_rank(ctx)) % RANKS;
    if (f->trial % 4 && turn) pause_us(turn * (f->trial % 4 == 1 ? 20 : 300));
}

static int trials(int few)
{
    const char *text = getenv("DT_TEST_LONG");
    return text && *text && *text != '0' ? few * 10 : few;
}

static void expect_message(const fault *f, int rank, dt_status status, const char *message)
{
    expect(f->status[rank] == status && strstr(f->error[rank], message),
           "trial %d, rank %d: status %d, \"%s\", want %d, \"%s\"", f->trial, rank, (int)f->status[rank],
           f->error[rank], (int)status, message);
}

static dt_status run_fault(fault *f, int trial, dt_rank_fn fn, char error[TEXT])
{
    *f = (fault){ .trial = trial };
    return dt_launch_threads(RANKS, fn, f, error, TEXT);
}

static dt_status returns_early(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dti_group *group = whole(ctx);
    meet(group, 1, "first");
    stagger(f, ctx);
    if (dt_rank(ctx) != 1) meet(group, 2, "second");
    note(f, ctx);
    return dt_context_status(ctx);
}

static void a_rank_returns_early(void)
{
    char error[TEXT];
    fault f;
    for (int i = 0; i < trials(100); i++) {
        expect(run_fault(&f, i, returns_early, error) == DT_ERR_PEER, "%s", error);
        expect(f.status[1] == DT_OK, "%s", f.error[1]);
        expect_message(&f, 0, DT_ERR_PEER, "rank 1 has returned");
        expect_message(&f, 2, DT_ERR_PEER, "rank 1 has returned");
    }
}

static dt_status fails_alone(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dti_group *group = whole(ctx);
    if (f->trial % 2) meet(group, 1, "first");
    stagger(f, ctx);
    if (dt_rank(ctx) == 1) dt_context_fail(ctx, DT_ERR_ARG, "bad number %d", f->trial);
    meet(group, 2, "second");
    note(f, ctx);
    if (f->status[dt_rank(ctx)] == DT_ERR_PEER)
        expect(dt_context_clear(ctx) == DT_ERR_PEER, "the error of a dead group was cleared");
    return dt_context_status(ctx);
}

static void a_rank_fails_alone(void)
{
    char error[TEXT], message[64];
    fault f;
    for (int i = 0; i < trials(100); i++) {
        expect(run_fault(&f, i, fails_alone, error) == DT_ERR_ARG, "%s", error);
        snprintf(message, sizeof message, "rank 1: bad number %d", i);
        expect(strcmp(error, message) == 0, "%s", error);
        snprintf(message, sizeof message, "rank 1 failed first: bad number %d", i);
        expect_message(&f, 0, DT_ERR_PEER, message);
        expect_message(&f, 1, DT_ERR_ARG, "bad number");
        expect_message(&f, 2, DT_ERR_PEER, message);
    }
}

static dt_status calls_something_else(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dti_group *group = whole(ctx);
    stagger(f, ctx);
    if (dt_rank(ctx) == f->trial % RANKS) meet(group, 5, "gather");
    else meet(group, 6, "reduce");
    note(f, ctx);
    return dt_context_status(ctx);
}

static void a_rank_calls_something_else(void)
{
    char error[TEXT], call[64];
    fault f;
    for (int i = 0; i < trials(100); i++) {
        int desync = 0;
        expect(run_fault(&f, i, calls_something_else, error) == DT_ERR_DESYNC, "%s", error);
        snprintf(call, sizeof call, "rank %d gather", i % RANKS);
        expect(strstr(error, call) && strstr(error, " reduce"), "%s", error);
        for (int r = 0; r < RANKS; r++) {
            desync += f.status[r] == DT_ERR_DESYNC;
            expect(f.status[r] == DT_ERR_DESYNC || f.status[r] == DT_ERR_PEER, "rank %d: %d", r, (int)f.status[r]);
            expect(strstr(f.error[r], call) != NULL, "%s", f.error[r]);
        }
        expect(desync > 0, "no rank saw it");
    }
}

static dt_status comes_late(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dti_group *group = whole(ctx);
    for (int i = 0; i < 5; i++) {
        if (dt_rank(ctx) == (f->trial + i) % RANKS) pause_us(f->trial % 7 * 100);
        meet(group, (uint64_t)i, "barrier");
    }
    note(f, ctx);
    return dt_context_status(ctx);
}

static void a_rank_comes_late(void)
{
    char error[TEXT];
    fault f;
    for (int i = 0; i < trials(100); i++) expect(run_fault(&f, i, comes_late, error) == DT_OK, "%s", error);
}

static dt_status never_comes(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dti_group *group = whole(ctx);
    if (dt_rank(ctx) == 1)
        while (atomic_load(&f->gone) < RANKS - 1) pause_us(100);
    meet(group, 1, "gather");
    note(f, ctx);
    return dt_context_status(ctx);
}

static void a_rank_never_comes(void)
{
    char error[TEXT];
    fault f;
    setenv("DT_TIMEOUT", "0.1", 1);
    for (int i = 0; i < trials(20); i++) {
        expect(run_fault(&f, i, never_comes, error) == DT_ERR_TIMEOUT, "%s", error);
        expect(strstr(error, "rank 1 did not come to gather within 0.1 s") != NULL, "%s", error);
        for (int r = 0; r < RANKS; r++)
            expect(f.status[r] == DT_ERR_PEER || (r != 1 && f.status[r] == DT_ERR_TIMEOUT), "rank %d: %s", r,
                   f.error[r]);
    }
    unsetenv("DT_TIMEOUT");
}

/* Arguments that all ranks refuse, before the first message: who clears goes on. */
static dt_status fails_alike(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dti_group *group = whole(ctx);
    for (int i = 0; i < 4; i++) {
        stagger(f, ctx);
        dt_context_fail(ctx, DT_ERR_SHAPE, "5 rows");
        expect(meet(group, 3, "refused") == DT_ERR_SHAPE, "a failed context communicates");
        expect(dt_context_clear(ctx) == DT_OK, "%s", dt_context_error(ctx));
        expect(meet(group, (uint64_t)i, "barrier") == DT_OK, "%s", dt_context_error(ctx));
    }
    note(f, ctx);
    return dt_context_status(ctx);
}

static void ranks_fail_alike_and_clear(void)
{
    char error[TEXT];
    fault f;
    for (int i = 0; i < trials(100); i++) expect(run_fault(&f, i, fails_alike, error) == DT_OK, "%s", error);
}

/* One that fails alone, forgets it and goes on as if nothing had been is found out. */
static dt_status fails_alone_and_clears(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dti_group *group = whole(ctx);
    meet(group, 1, "first");
    if (dt_rank(ctx) == 1) {
        dt_context_fail(ctx, DT_ERR_ARG, "bad number");
        dt_context_clear(ctx);
    }
    stagger(f, ctx);
    meet(group, 2, "second");
    note(f, ctx);
    dt_status status = dt_context_clear(ctx);
    expect(status != DT_OK && status == dt_context_status(ctx), "rank %d: clear gave %d", dt_rank(ctx), (int)status);
    expect(meet(group, 3, "third") == status, "a dead group works");
    return dt_context_status(ctx);
}

static void a_dead_group_stays_dead(void)
{
    char error[TEXT];
    fault f;
    for (int i = 0; i < trials(100); i++) {
        run_fault(&f, i, fails_alone_and_clears, error);
        expect_message(&f, 0, DT_ERR_PEER, "rank 1 failed first: bad number");
        expect_message(&f, 2, DT_ERR_PEER, "rank 1 failed first: bad number");
        expect(f.status[1] == DT_ERR_COMM || f.status[1] == DT_ERR_ARG, "rank 1: %s", f.error[1]);
        expect(strstr(error, "bad number") != NULL, "%s", error);
    }
}

/* A rank outside the circle of a failure hears of it from those inside. */
static dt_status fails_in_a_chain(dt_context *ctx, void *arg)
{
    static const int pairs[2][2] = { { 0, 1 }, { 1, 2 } };
    fault *f = arg;
    dti_comm *comm = dti_comm_of(ctx);
    stagger(f, ctx);
    if (dt_rank(ctx) == 0) dt_context_fail(ctx, DT_ERR_IO, "no file");
    for (int i = 0; i < 2; i++)
        if (dt_rank(ctx) == pairs[i][0] || dt_rank(ctx) == pairs[i][1])
            meet(comm->ops->group(comm, pairs[i], 2), 1, "it");
    note(f, ctx);
    return dt_context_status(ctx);
}

static void an_error_goes_through_a_chain(void)
{
    char error[TEXT];
    fault f;
    for (int i = 0; i < trials(100); i++) {
        expect(run_fault(&f, i, fails_in_a_chain, error) == DT_ERR_IO, "%s", error);
        expect_message(&f, 1, DT_ERR_PEER, "rank 0 failed first: no file");
        expect_message(&f, 2, DT_ERR_PEER, "rank 0 failed first: no file");
    }
}

/* Rank 0 shows a lot to others that return; when it waits for them, if not before, it hears of that. */
static dt_status shows_to_nobody(dt_context *ctx, void *arg)
{
    fault *f = arg;
    dti_group *group = whole(ctx);
    stagger(f, ctx);
    dt_status status = DT_OK;
    for (int i = 0; i < 100 && dt_rank(ctx) == 0 && !status; i++) {
        dti_storage *source = dti_storage_new(ctx, 1000);
        status = dti_exchange_run(group, &(dti_exchange){ .call = { 1, "broadcast" }, .dtype = DT_U8, .source = source,
                                                          .target_dtype = DT_U8 });
        dti_storage_release(source);
    }
    if (dt_rank(ctx) == 0) meet(group, 2, "barrier");
    note(f, ctx);
    return dt_context_status(ctx);
}

static void nobody_takes(void)
{
    char error[TEXT];
    fault f;
    for (int i = 0; i < trials(100); i++) {
        expect(run_fault(&f, i, shows_to_nobody, error) == DT_ERR_PEER, "%s", error);
        expect_message(&f, 0, DT_ERR_PEER, "has returned");
    }
}

/* Rank 0 shows and returns; the others take from what was its memory. */
static dt_status shows_and_returns(dt_context *ctx, void *arg)
{
    fault *f = arg;
    unsigned char taken[5000] = { 0 };
    dti_group *group = whole(ctx);
    dti_storage *source = dt_rank(ctx) == 0 ? dti_storage_new(ctx, sizeof taken) : NULL;
    if (source) memset(source->bytes, 7, source->n);
    else pause_us(f->trial % 3 * 100);
    dti_exchange_run(group, &(dti_exchange){ .call = { 1, "broadcast" }, .dtype = DT_U8, .source = source,
        .target = source ? NULL : taken, .gets = &(dti_copy){ .run = sizeof taken }, .get_count = source ? 0 : 1,
        .target_dtype = DT_U8 });
    expect(source || (taken[0] == 7 && taken[sizeof taken - 1] == 7), "rank %d took something else", dt_rank(ctx));
    dti_storage_release(source);
    note(f, ctx);
    return dt_context_status(ctx);
}

static void sources_outlive_their_rank(void)
{
    char error[TEXT];
    fault f;
    for (int i = 0; i < trials(100); i++) expect(run_fault(&f, i, shows_and_returns, error) == DT_OK, "%s", error);
}

static const test_row rows[] = {
    { "every_rank_runs_once", every_rank_runs_once },
    { "ranks_share_the_cpus", ranks_share_the_cpus },
    { "arguments_are_checked", arguments_are_checked },
    { "the_first_error_is_reported", the_first_error_is_reported },
    { "options_say_how_to_run", options_say_how_to_run },
    { "errors_have_a_line_and_a_status", errors_have_a_line_and_a_status },
    { "help_is_printed", help_is_printed },
    { "a_rank_returns_early", a_rank_returns_early },
    { "a_rank_fails_alone", a_rank_fails_alone },
    { "a_rank_calls_something_else", a_rank_calls_something_else },
    { "a_rank_comes_late", a_rank_comes_late },
    { "a_rank_never_comes", a_rank_never_comes },
    { "ranks_fail_alike_and_clear", ranks_fail_alike_and_clear },
    { "a_dead_group_stays_dead", a_dead_group_stays_dead },
    { "an_error_goes_through_a_chain", an_error_goes_through_a_chain },
    { "nobody_takes", nobody_takes },
    { "sources_outlive_their_rank", sources_outlive_their_rank },
};

const suite the_suite = { "launch", rows, (int)(sizeof rows / sizeof *rows) };
