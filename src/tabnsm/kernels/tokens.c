/* Piecewise-linear tokens of numbers on the CPU: each number is looked up among its bins.
 *
 * Forward, rows are shared out to threads; backward, features are, each with all its rows in
 * order, so that no two threads add to the same vector and the bits do not depend on them.
 */
#include <pthread.h>
#include <stdint.h>

#define MAX_THREADS 256

typedef struct {
    int64_t n_rows, n_features, n_binned, n_bins, d_token, n_threads;
    const float *x;            /* (row, binned feature) */
    const int64_t *feature;    /* place of each binned feature among all features */
    const float *low, *width;  /* (binned feature, bin); those that a feature lacks are at its end */
    const int64_t *begin;      /* first bin of each binned feature among all bins, and their sum */
    const float *slope;        /* (bin of all, d_token) */
    float *start;              /* (bin of all, d_token), room for what the bins before add up to */
    float *tokens;             /* (row, feature, d_token), to be added to */
    const float *d_tokens;     /* (row, feature, d_token) */
    float *d_start, *d_slope;  /* (bin of all, d_token), zero before */
    void (*parallel)(void (*)(void *), void *, unsigned n, unsigned flags); /* or NULL */
} Piecewise;

typedef struct {
    const Piecewise *problem;
    int64_t next, n_parts;
    int backward;
} Job;

/* The bin that x lies in, or the nearest, and how far into it x is. */
static inline int64_t find_bin(const Piecewise *b, int64_t binned, float x, float *share) {
    const float *low = b->low + binned * b->n_bins;
    int64_t own = b->begin[binned + 1] - b->begin[binned];
    int32_t n = 0;
    for (int64_t i = 0; i < own; i++) n += low[i] <= x;
    int64_t bin = n ? n - 1 : 0;
    float far = (x - low[bin]) / b->width[binned * b->n_bins + bin];
    *share = far < 0.0f ? 0.0f : far > 1.0f ? 1.0f : far;
    return b->begin[binned] + bin;
}

/* What the bins before each bin add up to. */
static void add_up(const Piecewise *b) {
    int64_t d = b->d_token;
    for (int64_t i = 0; i < b->n_binned; i++) {
        for (int64_t k = 0; k < d; k++) b->start[b->begin[i] * d + k] = 0.0f;
        for (int64_t bin = b->begin[i] + 1; bin < b->begin[i + 1]; bin++) {
            const float *start = b->start + (bin - 1) * d, *slope = b->slope + (bin - 1) * d;
            for (int64_t k = 0; k < d; k++) b->start[bin * d + k] = start[k] + slope[k];
        }
    }
}

static void add_row(const Piecewise *b, int64_t row) {
    int64_t d = b->d_token;
    for (int64_t i = 0; i < b->n_binned; i++) {
        float share;
        int64_t bin = find_bin(b, i, b->x[row * b->n_binned + i], &share);
        float *token = b->tokens + (row * b->n_features + b->feature[i]) * d;
        const float *start = b->start + bin * d, *slope = b->slope + bin * d;
        for (int64_t k = 0; k < d; k++) token[k] += start[k] + share * slope[k];
    }
}

static void gather_gradients(const Piecewise *b, int64_t binned) {
    int64_t d = b->d_token;
    for (int64_t row = 0; row < b->n_rows; row++) {
        float share;
        int64_t bin = find_bin(b, binned, b->x[row * b->n_binned + binned], &share);
        const float *token = b->d_tokens + (row * b->n_features + b->feature[binned]) * d;
        float *start = b->d_start + bin * d, *slope = b->d_slope + bin * d;
        for (int64_t k = 0; k < d; k++) {
            start[k] += token[k];
            slope[k] += share * token[k];
        }
    }
    /* Every bin is part of the start of all bins behind it. */
    for (int64_t bin = b->begin[binned + 1] - 2; bin >= b->begin[binned]; bin--) {
        float *start = b->d_start + bin * d, *slope = b->d_slope + bin * d;
        for (int64_t k = 0; k < d; k++) {
            slope[k] += start[d + k];
            start[k] += start[d + k];
        }
    }
}

static void work(void *argument) {
    Job *job = argument;
    const Piecewise *b = job->problem;
    int64_t n = job->backward ? b->n_binned : b->n_rows;
    for (;;) {
        int64_t part = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (part >= job->n_parts) return;
        int64_t last = (part + 1) * n / job->n_parts;
        for (int64_t i = part * n / job->n_parts; i < last; i++) {
            if (job->backward)
                gather_gradients(b, i);
            else
                add_row(b, i);
        }
    }
}

static void *work_in_thread(void *argument) {
    work(argument);
    return NULL;
}

__attribute__((visibility("default"))) void tabnsm_piecewise_tokens(const Piecewise *problem,
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
