/* Bends of the numbers' tokens on the CPU: a look-up between the ends of pieces, per number.
 *
 * Forward, rows are shared out to threads; backward, features are, each with all its rows in
 * order, so that no two threads add to the same vector and the bits do not depend on them.
 */
#include <pthread.h>
#include <stdint.h>

#define MAX_THREADS 256

typedef struct {
    int64_t n_rows, n_features, n_bent, n_bins, d_token, n_threads;
    const float *x;            /* (row, bent feature) */
    const int64_t *feature;    /* place of each bent feature among all features */
    const float *low, *width;  /* (bent feature, piece); those that a feature lacks are at its end */
    const int64_t *begin;      /* first piece of each bent feature among all pieces, and their sum */
    const float *slope;        /* (piece of all, d_token) */
    float *start;              /* (piece of all, d_token), room for what the pieces before add up to */
    float *tokens;             /* (row, feature, d_token), to be added to */
    const float *d_tokens;     /* (row, feature, d_token) */
    float *d_start, *d_slope;  /* (piece of all, d_token), zero before */
    void (*parallel)(void (*)(void *), void *, unsigned n, unsigned flags); /* or NULL */
} Bends;

typedef struct {
    const Bends *problem;
    int64_t next, n_parts;
    int backward;
} Job;

/* The piece that x lies in, or the nearest, and how far into it x is. */
static inline int64_t find_piece(const Bends *b, int64_t bent, float x, float *share) {
    const float *low = b->low + bent * b->n_bins;
    int64_t own = b->begin[bent + 1] - b->begin[bent];
    int32_t n = 0;
    for (int64_t i = 0; i < own; i++) n += low[i] <= x;
    int64_t piece = n ? n - 1 : 0;
    float far = (x - low[piece]) / b->width[bent * b->n_bins + piece];
    *share = far < 0.0f ? 0.0f : far > 1.0f ? 1.0f : far;
    return b->begin[bent] + piece;
}

/* What the pieces before each piece add up to. */
static void add_up(const Bends *b) {
    int64_t d = b->d_token;
    for (int64_t i = 0; i < b->n_bent; i++) {
        for (int64_t k = 0; k < d; k++) b->start[b->begin[i] * d + k] = 0.0f;
        for (int64_t piece = b->begin[i] + 1; piece < b->begin[i + 1]; piece++) {
            const float *start = b->start + (piece - 1) * d, *slope = b->slope + (piece - 1) * d;
            for (int64_t k = 0; k < d; k++) b->start[piece * d + k] = start[k] + slope[k];
        }
    }
}

static void bend_row(const Bends *b, int64_t row) {
    int64_t d = b->d_token;
    for (int64_t i = 0; i < b->n_bent; i++) {
        float share;
        int64_t piece = find_piece(b, i, b->x[row * b->n_bent + i], &share);
        float *token = b->tokens + (row * b->n_features + b->feature[i]) * d;
        const float *start = b->start + piece * d, *slope = b->slope + piece * d;
        for (int64_t k = 0; k < d; k++) token[k] += start[k] + share * slope[k];
    }
}

static void gather_gradients(const Bends *b, int64_t bent) {
    int64_t d = b->d_token;
    for (int64_t row = 0; row < b->n_rows; row++) {
        float share;
        int64_t piece = find_piece(b, bent, b->x[row * b->n_bent + bent], &share);
        const float *token = b->d_tokens + (row * b->n_features + b->feature[bent]) * d;
        float *start = b->d_start + piece * d, *slope = b->d_slope + piece * d;
        for (int64_t k = 0; k < d; k++) {
            start[k] += token[k];
            slope[k] += share * token[k];
        }
    }
    /* Every piece is part of the start of all pieces behind it. */
    for (int64_t piece = b->begin[bent + 1] - 2; piece >= b->begin[bent]; piece--) {
        float *start = b->d_start + piece * d, *slope = b->d_slope + piece * d;
        for (int64_t k = 0; k < d; k++) {
            slope[k] += start[d + k];
            start[k] += start[d + k];
        }
    }
}

static void work(void *argument) {
    Job *job = argument;
    const Bends *b = job->problem;
    int64_t n = job->backward ? b->n_bent : b->n_rows;
    for (;;) {
        int64_t part = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (part >= job->n_parts) return;
        int64_t last = (part + 1) * n / job->n_parts;
        for (int64_t i = part * n / job->n_parts; i < last; i++) {
            if (job->backward)
                gather_gradients(b, i);
            else
                bend_row(b, i);
        }
    }
}

static void *work_in_thread(void *argument) {
    work(argument);
    return NULL;
}

__attribute__((visibility("default"))) void tabnsm_bend_tokens(const Bends *problem,
                                                               int backward) {
    pthread_t threads[MAX_THREADS];
    int n = 0;
    Job job = {problem, 0, 4 * problem->n_threads, backward};
    if (!backward) add_up(problem);
    if (problem->n_threads > 1 && problem->parallel) {
        problem->parallel(work, &job, (unsigned)problem->n_threads, 0);
        return;
    }
    while (n < problem->n_threads - 1 && n < MAX_THREADS &&
           !pthread_create(&threads[n], NULL, work_in_thread, &job))
        n++;
    work(&job);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}
