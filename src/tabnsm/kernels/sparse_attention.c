/* Sparse feature-wise attention on the CPU, forward and backward.
 *
 * One (row, head) pair at a time: its keys and values are packed once into scratch memory that
 * stays in cache, then tiles of queries run through the three branches. No pair shares anything
 * with another, so the result does not depend on threads or on the other rows of a batch.
 *
 * Two layouts of a product with the logits appear:
 *   - window and compressed branch: a vector holds one key against LANES neighbouring queries;
 *   - selected branch: a vector holds one query against LANES neighbouring keys of a block.
 * In wide tables neighbouring compressed blocks share the mean of their keys; the selection then has
 * a second step, in the layout of the selected branch, among the blocks of the best groups.
 * The backward pass recomputes the probabilities from the largest logit and the inverse sum of
 * each branch. The gradient of a gate equals sum_j p_j dp_j, which the softmax needs anyway.
 *
 * The same file is compiled once per instruction set; see setup.py.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef LANES
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#endif
#define TILE (2 * LANES)
#define KEY_CHUNK 128 /* keys whose rows and probabilities fit in the first-level cache together */
#define MAX_THREADS 256
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef float loose_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t loose_ivec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* Element (row, head, feature, component) of a tensor is data[dot(stride, index)]. */
typedef struct {
    float *data;
    int64_t stride[4];
} Tensor;

typedef struct {
    int64_t n_rows, n_heads, n_features, d_head, n_compressed;
    int64_t group_size; /* compressed blocks that share a key and a value */
    int64_t window_size, block_size, n_selected;
    int64_t n_slots; /* of a row of the overlap; 0 when selection and compressed blocks coincide */
    int64_t n_threads;
    Tensor q, k, v, k_cmp, v_cmp, gates, out;
    Tensor d_out, dq, dk, dv, dk_cmp, dv_cmp, d_gates;
    float *stats;      /* (row, head, 6, feature): largest logit and inverse sum per branch */
    int32_t *selected; /* (row, head, feature, n_selected) */
    /* (selection block, slot): compressed blocks that overlap it, and by which share of theirs */
    const int32_t *overlap;
    const float *share;
    /* Runs a function on n threads of a pool that exists, and waits (GOMP_parallel); or NULL. */
    void (*parallel)(void (*)(void *), void *, unsigned n, unsigned flags);
} Problem;

enum { WINDOW, COMPRESSED, SELECTED };

/* ---- vectors ---- */

INLINE vec load(const float *p) { return *(const loose_vec *)p; }
INLINE void store(float *p, vec x) { *(loose_vec *)p = x; }
INLINE vec splat(float x) { return x - (vec){0}; }

INLINE vec choose(ivec mask, vec yes, vec no) {
#if defined(__AVX2__) && LANES == 8
    return (vec)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#else
    return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask));
#endif
}

/* Both return the second operand when one is not a number, like the instruction. */
INLINE vec max_vec(vec a, vec b) {
#if defined(__AVX512F__) && LANES == 16
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__) && LANES == 8
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__) && LANES == 4
    return (vec)_mm_max_ps((__m128)a, (__m128)b);
#else
    return choose((ivec)(a > b), a, b);
#endif
}

INLINE vec min_vec(vec a, vec b) {
#if defined(__AVX512F__) && LANES == 16
    return (vec)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__) && LANES == 8
    return (vec)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__) && LANES == 4
    return (vec)_mm_min_ps((__m128)a, (__m128)b);
#else
    return choose((ivec)(a < b), a, b);
#endif
}

INLINE ivec lane_numbers(void) {
    ivec lanes;
    for (int i = 0; i < LANES; i++) lanes[i] = i;
    return lanes;
}

typedef float quad __attribute__((vector_size(16)));
typedef union {
    vec all;
    quad part[LANES / 4];
} Lanes;

INLINE float sum_lanes(vec x) {
    Lanes lanes = {x};
    quad sum = lanes.part[0];
    for (int i = 1; i < LANES / 4; i++) sum += lanes.part[i];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

INLINE float max_lanes(vec x) {
#if defined(__SSE2__)
    Lanes lanes = {x};
    __m128 top = (__m128)lanes.part[0];
    for (int i = 1; i < LANES / 4; i++) top = _mm_max_ps((__m128)lanes.part[i], top);
    top = _mm_max_ps(_mm_movehl_ps(top, top), top);
    return _mm_cvtss_f32(_mm_max_ss(_mm_shuffle_ps(top, top, 1), top));
#endif
    float largest = x[0];
    for (int i = 1; i < LANES; i++) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* 2**x for x <= 0: the integer part goes to the exponent bits, a polynomial does the rest. */
INLINE vec exp2_vec(vec x) {
    const float round = 12582912.0f; /* 1.5 * 2**23: adding it leaves the nearest integer */
    x = max_vec(splat(-126.0f), x);  /* in this order, not-a-number survives */
    vec shifted = x + round;
    vec f = x - (shifted - round);
    vec p = 1.5403530e-4f * f + 1.33335581e-3f;
    p = p * f + 9.61812911e-3f;
    p = p * f + 5.55041087e-2f;
    p = p * f + 2.40226507e-1f;
    p = p * f + 6.93147181e-1f;
    p = p * f + 1.0f;
    return (vec)((ivec)p + ((ivec)shifted << 23));
}

/* ---- products; rows of y have `width` floats, a multiple of LANES ---- */

/* logits[j][query] = sum_d xt[d][query] y[j][d] for n keys, rounded up to a multiple of 4. */
INLINE void score(const float *xt, const float *y, int64_t n, int64_t d_head, int64_t width,
                  float *logits, const int n_vecs) {
    for (int64_t j = 0; j < n; j += 4) {
        vec sum[4][2] = {{{0}}};
        const float *row = y + j * width;
        for (int64_t d = 0; d < d_head; d++) {
            for (int u = 0; u < n_vecs; u++) {
                vec x = load(xt + d * TILE + u * LANES);
                for (int i = 0; i < 4; i++) sum[i][u] += row[i * width + d] * x;
            }
        }
        for (int i = 0; i < 4; i++)
            for (int u = 0; u < n_vecs; u++) store(logits + (j + i) * TILE + u * LANES, sum[i][u]);
    }
}

/* out[query] += scale[query] * sum_j p[j][query] y[j] for some queries and vectors of a row. */
INLINE void mix_part(const float *p, const float *y, int64_t n, int64_t width, const float *scale,
                     float *out, const int n_queries, const int n_vecs) {
    vec sum[LANES][2] = {{{0}}};
    for (int64_t j = 0; j < n; j++) {
        for (int u = 0; u < n_vecs; u++) {
            vec row = load(y + j * width + u * LANES);
            for (int i = 0; i < n_queries; i++) sum[i][u] += p[j * TILE + i] * row;
        }
    }
    for (int i = 0; i < n_queries; i++)
        for (int u = 0; u < n_vecs; u++) {
            float *to = out + i * width + u * LANES;
            store(to, load(to) + scale[i] * sum[i][u]);
        }
}

/* out[query] += scale[query] * sum_j p[j][query] y[j]; keys beyond `reach` of a query are skipped.
 * Key j lies at offset + j from the first query of the tile. */
static void mix(const float *p, const float *y, int64_t n, int64_t width, const float *scale,
                float *out, int64_t offset, int64_t reach) {
    for (int64_t from = 0; from < n; from += KEY_CHUNK) {
        int64_t to = from + KEY_CHUNK < n ? from + KEY_CHUNK : n;
        int64_t part = 0;
        for (; part + 2 * LANES <= width; part += 2 * LANES)
            for (int i = 0; i < TILE; i += 4) {
                int64_t first = i - reach - offset, last = i + 4 + reach - offset;
                first = first > from ? first : from;
                last = last < to ? last : to;
                mix_part(p + first * TILE + i, y + first * width + part, last - first, width,
                         scale + i, out + i * width + part, 4, 2);
            }
        if (part < width)
            for (int i = 0; i < TILE; i += LANES) {
                int64_t first = i - reach - offset, last = i + LANES + reach - offset;
                first = first > from ? first : from;
                last = last < to ? last : to;
                mix_part(p + first * TILE + i, y + first * width + part, last - first, width,
                         scale + i, out + i * width + part, LANES, 1);
            }
    }
}

INLINE void spread_part(const float *p, const float *x, int64_t n_queries, int64_t width, float *dy,
                        const int n_keys, const int n_vecs) {
    vec sum[8][2];
    for (int j = 0; j < n_keys; j++)
        for (int u = 0; u < n_vecs; u++) sum[j][u] = load(dy + j * width + u * LANES);
    for (int64_t i = 0; i < n_queries; i++) {
        for (int u = 0; u < n_vecs; u++) {
            vec row = load(x + i * width + u * LANES);
            for (int j = 0; j < n_keys; j++) sum[j][u] += p[j * TILE + i] * row;
        }
    }
    for (int j = 0; j < n_keys; j++)
        for (int u = 0; u < n_vecs; u++) store(dy + j * width + u * LANES, sum[j][u]);
}

/* dy[j] += sum_query p[j][query] x[query]; p and dy have rows up to a multiple of 8 keys. */
static void spread(const float *p, const float *x, int64_t n, int64_t width, float *dy,
                   int64_t offset, int64_t reach) {
    int64_t part = 0;
    for (; part + 2 * LANES <= width; part += 2 * LANES)
        for (int64_t j = 0; j < n; j += 4) {
            int64_t first = j + offset - reach, last = j + 4 + offset + reach;
            first = first > 0 ? first : 0;
            last = last < TILE ? last : TILE;
            spread_part(p + j * TILE + first, x + first * width + part, last - first, width,
                        dy + j * width + part, 4, 2);
        }
    if (part < width)
        for (int64_t j = 0; j < n; j += 8) {
            int64_t first = j + offset - reach, last = j + 8 + offset + reach;
            first = first > 0 ? first : 0;
            last = last < TILE ? last : TILE;
            spread_part(p + j * TILE + first, x + first * width + part, last - first, width,
                        dy + j * width + part, 8, 1);
        }
}

/* ---- ranking: the m largest logits of each lane, best first, the earlier of equals ---- */

INLINE vec rank_some(const float *logits, int64_t n, vec *best, ivec *at, const int64_t m) {
    for (int64_t t = 0; t < m; t++) {
        best[t] = splat(-__builtin_inff());
        at[t] = (int32_t)t - (ivec){0};
    }
    for (int64_t j = 0; j < n; j++) {
        vec x = load(logits + j * TILE), falling = x;
        vec index = (vec)((int32_t)j - (ivec){0});
        for (int64_t t = 0; t < m; t++) {
            /* x itself is compared, not what it displaced: that one goes before its equals. */
            ivec better = (ivec)(x > best[t]);
            vec top = max_vec(falling, best[t]);
            falling = min_vec(best[t], falling);
            best[t] = top;
            vec loser = choose(better, (vec)at[t], index);
            at[t] = (ivec)choose(better, index, (vec)at[t]);
            index = loser;
        }
    }
    return best[0];
}

/* ---- one (row, head) pair ---- */

typedef struct {
    int64_t row, head, d_head, width, n_features, n_keys, n_groups, n_blocks;
    int64_t n_ranked;    /* groups per query whose blocks may be selected */
    int64_t pitch;       /* between the selected blocks of a query in `chosen` */
    int64_t group_pitch; /* between its groups in `members` */
    float scale, log2_scale;
    float *k, *v;                     /* rows of `width`, zeros beyond the end */
    float *k_cmp, *v_cmp;             /* the same for the groups of compressed blocks */
    float *kt, *vt;                   /* [block][d][key of the block] */
    float *kt_cmp;                    /* [group][d][key of the group]; unused by groups of one */
    float *dk, *dv, *dk_cmp, *dv_cmp; /* gradients, private to the pair */
    float *q, *qt, *dout, *doutt;     /* tile of queries as rows and as columns */
    float *out, *dq;                  /* tile of results */
    float *logits, *dp;               /* [key][query of the tile] */
    float *chosen, *chosen_dp;        /* logits of the selected keys of one query */
    float *members;                   /* logits of the blocks of its groups */
    vec *best;
    ivec *best_at;
    int32_t *groups, *selected; /* [query of the tile][rank] */
} Pair;

INLINE float *element(const Tensor *t, const Pair *pair, int64_t feature) {
    return t->data + pair->row * t->stride[0] + pair->head * t->stride[1] +
           feature * t->stride[2];
}

INLINE void copy_row(float *to, const float *from, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) memcpy(to + i, from + i, 4 * sizeof(float));
    for (; i < n; i++) to[i] = from[i];
}

static void pack_rows(const Tensor *t, const Pair *pair, int64_t n, float *rows) {
    for (int64_t i = 0; i < n; i++)
        copy_row(rows + i * pair->width, element(t, pair, i), pair->d_head);
}

static void unpack_rows(const float *rows, const Pair *pair, int64_t from, int64_t n,
                        const Tensor *t) {
    for (int64_t i = 0; i < n; i++)
        copy_row(element(t, pair, from + i), rows + i * pair->width, pair->d_head);
}

INLINE int64_t group_members(const Problem *problem, int64_t group) {
    int64_t left = problem->n_compressed - group * problem->group_size;
    return left < problem->group_size ? left : problem->group_size;
}

/* Row by row the mean of each group of compressed blocks. */
static void pack_means(const Problem *problem, const Tensor *t, const Pair *pair, float *rows) {
    for (int64_t j = 0; j < pair->n_groups; j++, rows += pair->width) {
        int64_t n = group_members(problem, j);
        memset(rows, 0, sizeof(float) * pair->d_head);
        for (int64_t i = 0; i < n; i++) {
            const float *row = element(t, pair, j * problem->group_size + i);
            for (int64_t d = 0; d < pair->d_head; d++) rows[d] += row[d];
        }
        for (int64_t d = 0; d < pair->d_head; d++) rows[d] /= (float)n;
    }
}

static void unpack_means(const Problem *problem, const float *rows, const Pair *pair,
                         const Tensor *t) {
    for (int64_t j = 0; j < pair->n_groups; j++, rows += pair->width) {
        int64_t n = group_members(problem, j);
        for (int64_t i = 0; i < n; i++) {
            float *row = element(t, pair, j * problem->group_size + i);
            for (int64_t d = 0; d < pair->d_head; d++) row[d] = rows[d] / (float)n;
        }
    }
}

static void transpose_groups(const Problem *problem, const Tensor *t, const Pair *pair,
                             float *out) {
    int64_t size = problem->group_size;
    for (int64_t j = 0; j < pair->n_groups; j++)
        for (int64_t i = 0; i < group_members(problem, j); i++) {
            const float *row = element(t, pair, j * size + i);
            for (int64_t d = 0; d < pair->d_head; d++)
                out[(j * pair->d_head + d) * size + i] = row[d];
        }
}

static void transpose_blocks(const float *rows, const Pair *pair, int64_t block_size, float *out) {
    for (int64_t j = 0; j < pair->n_blocks; j++)
        for (int64_t i = 0; i < block_size; i++)
            for (int64_t d = 0; d < pair->d_head; d++)
                out[(j * pair->d_head + d) * block_size + i] =
                    rows[(j * block_size + i) * pair->width + d];
}

/* Queries past the last feature are zeros; their results are never read. */
static void load_tile(const Tensor *t, const Pair *pair, int64_t from, int64_t n, float *rows,
                      float *columns) {
    memset(rows, 0, sizeof(float) * TILE * pair->width);
    for (int64_t i = 0; i < n; i++)
        copy_row(rows + i * pair->width, element(t, pair, from + i), pair->d_head);
    for (int64_t d = 0; d < pair->d_head; d++)
        for (int i = 0; i < TILE; i++) columns[d * TILE + i] = rows[i * pair->width + d];
}

/* The keys that some query of the tile sees through the window, and for LANES of its queries. */
typedef struct {
    int64_t first, n, offset;
} Strip;

INLINE Strip strip_of(const Problem *problem, int64_t from, int64_t n_queries) {
    int64_t first = from - problem->window_size, last = from + n_queries + problem->window_size;
    first = first > 0 ? first : 0;
    last = last < problem->n_features ? last : problem->n_features;
    return (Strip){first, last > first ? last - first : 0, first - from};
}

INLINE ivec near(const Problem *problem, int64_t offset) {
    int32_t reach = problem->window_size < 1 << 30 ? (int32_t)problem->window_size : 1 << 30;
    int32_t at = (int32_t)offset;
    ivec lanes = lane_numbers();
    return (ivec)(lanes >= at - reach) & (ivec)(lanes <= at + reach);
}

/* p = 2 ** (log2_scale * (logit - largest)) in place for n keys of LANES queries; returns sums. */
INLINE vec exponentials(float *logits, int64_t n, vec largest, float log2_scale) {
    vec total = {0};
    vec shift = -largest * log2_scale;
    for (int64_t j = 0; j < n; j++) {
        vec p = exp2_vec(load(logits + j * TILE) * log2_scale + shift);
        store(logits + j * TILE, p);
        total += p;
    }
    return total;
}

/* The m largest scores of LANES queries, their places to `at`; returns the largest. */
static vec rank(Pair *pair, const float *scores, int64_t n, int64_t m, int32_t *at) {
    vec top = m == 1   ? rank_some(scores, n, pair->best, pair->best_at, 1)
              : m == 2 ? rank_some(scores, n, pair->best, pair->best_at, 2)
              : m == 3 ? rank_some(scores, n, pair->best, pair->best_at, 3)
                       : rank_some(scores, n, pair->best, pair->best_at, m);
    for (int i = 0; i < LANES; i++)
        for (int64_t t = 0; t < m; t++) at[i * m + t] = pair->best_at[t][i];
    return top;
}

/* Mass of the compressed blocks that each selection block overlaps, in proportion. */
static void share_mass(const Problem *problem, const float *p, int64_t n_blocks, float *scores) {
    const int32_t *overlap = problem->overlap;
    const float *share = problem->share;
    for (int64_t j = 0; j < n_blocks; j++) {
        vec sum = {0};
        for (int64_t i = 0; i < problem->n_slots; i++)
            sum += *share++ * load(p + *overlap++ * TILE);
        store(scores + j * TILE, sum);
    }
}

static void forward_compressed(const Problem *problem, Pair *pair, float *largest, float *inverse) {
    int64_t n = pair->n_groups, m = problem->n_selected;
    score(pair->qt, pair->k_cmp, n, pair->d_head, pair->width, pair->logits, 2);
    for (int u = 0; u < TILE; u += LANES) {
        float *logits = pair->logits + u;
        vec top = load(logits);
        if (problem->group_size > 1)
            top = rank(pair, logits, n, pair->n_ranked, pair->groups + u * pair->n_ranked);
        else if (!problem->n_slots)
            top = rank(pair, logits, n, m, pair->selected + u * m);
        else
            for (int64_t j = 1; j < n; j++) top = max_vec(load(logits + j * TILE), top);
        store(largest + u, top);
        store(inverse + u, 1.0f / exponentials(logits, n, top, pair->log2_scale));
        if (problem->n_slots) {
            share_mass(problem, logits, pair->n_blocks, pair->dp + u);
            rank(pair, pair->dp + u, pair->n_blocks, m, pair->selected + u * m);
        }
    }
}

static void forward_window(const Problem *problem, Pair *pair, int64_t from, float *largest,
                           float *inverse, Strip *whole) {
    *whole = strip_of(problem, from, TILE);
    for (int u = 0; u < TILE; u += LANES) {
        Strip strip = strip_of(problem, from + u, LANES);
        int64_t skipped = strip.n ? strip.first - whole->first : 0;
        float *logits = pair->logits + skipped * TILE + u;
        for (int64_t j = 0; j < skipped; j++) store(pair->logits + j * TILE + u, (vec){0});
        for (int64_t j = skipped + strip.n; j < whole->n; j++)
            store(pair->logits + j * TILE + u, (vec){0});
        float *buffer = pair->dp + u;
        vec top = splat(-__builtin_inff()), total = {0};
        score(pair->qt + u, pair->k + strip.first * pair->width, strip.n, pair->d_head,
              pair->width, buffer, 1);
        for (int64_t j = 0; j < strip.n; j++) {
            ivec seen = near(problem, strip.offset + j);
            top = max_vec(choose(seen, load(buffer + j * TILE), top), top);
        }
        vec shift = -top * pair->log2_scale;
        for (int64_t j = 0; j < strip.n; j++) {
            ivec seen = near(problem, strip.offset + j);
            vec p = exp2_vec(load(buffer + j * TILE) * pair->log2_scale + shift);
            p = choose(seen, p, (vec){0});
            store(logits + j * TILE, p);
            total += p;
        }
        store(largest + u, top);
        store(inverse + u, 1.0f / total);
    }
}

/* The selected branch, one query at a time. The functions are inlined into one copy for any shape
 * and one for the paper's: blocks of 10, 3 of them, none partial; constants there unroll them. */
typedef struct {
    int64_t size, n_selected, n_features;
    int64_t pitch;     /* between blocks in `chosen` */
    int64_t none_partial;
} Shape;

INLINE int64_t members(Shape shape, int64_t block) {
    int64_t left = shape.n_features - block * shape.size;
    return shape.none_partial || left >= shape.size ? shape.size : left;
}

INLINE vec mask_tail(vec x, int64_t n_valid, vec filler) {
    return n_valid >= LANES ? x : choose((ivec)(lane_numbers() < (int32_t)n_valid), x, filler);
}

/* Products of a query with the keys of some of its blocks. */
INLINE void score_blocks(Shape shape, const float *x, const float *columns,
                         const int32_t *selected, int64_t d_head, float *to, const int n_blocks) {
    for (int64_t i = 0; i < shape.size; i += TILE) {
        vec low[3] = {{0}}, high[3] = {{0}};
        const float *column[3];
        for (int t = 0; t < n_blocks; t++)
            column[t] = columns + selected[t] * d_head * shape.size + i;
        const int both = i + LANES < shape.size; /* else one vector holds the rest of a block */
        for (int64_t d = 0; d < d_head; d++)
            for (int t = 0; t < n_blocks; t++) {
                low[t] += x[d] * load(column[t] + d * shape.size);
                if (both) high[t] += x[d] * load(column[t] + d * shape.size + LANES);
            }
        for (int t = 0; t < n_blocks; t++) {
            store(to + t * shape.pitch + i, low[t]);
            if (both) store(to + t * shape.pitch + i + LANES, high[t]);
        }
    }
}

INLINE void score_chosen(Shape shape, const float *x, const float *columns,
                         const int32_t *selected, int64_t d_head, float *to) {
    int64_t t = 0;
    for (; t + 3 <= shape.n_selected; t += 3)
        score_blocks(shape, x, columns, selected + t, d_head, to + t * shape.pitch, 3);
    for (; t < shape.n_selected; t++)
        score_blocks(shape, x, columns, selected + t, d_head, to + t * shape.pitch, 1);
}

/* Logits of one query with the blocks of the groups that it ranked best, as a column of `logits`.
 * The groups come into rising order: then the first of equals is the one with the lower index. */
static void score_members(const Problem *problem, Pair *pair, int64_t query) {
    int64_t n = pair->n_ranked, size = problem->group_size, pitch = pair->group_pitch;
    int32_t *groups = pair->groups + query * n;
    float *to = pair->logits + query;
    Shape shape = {size, n, problem->n_compressed, pitch, 0};
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i; j > 0 && groups[j] < groups[j - 1]; j--) {
            int32_t lower = groups[j];
            groups[j] = groups[j - 1];
            groups[j - 1] = lower;
        }
    score_chosen(shape, pair->q + query * pair->width, pair->kt_cmp, groups, pair->d_head,
                 pair->members);
    for (int64_t j = 0; j < n; j++) {
        int64_t n_networks = members(shape, groups[j]), i = 0;
        for (; i < n_networks; i++, to += TILE) *to = pair->members[j * pitch + i];
        for (; i < size; i++, to += TILE) *to = -__builtin_inff();
    }
}

/* Selects among the blocks of the best groups of n queries. */
static void select_members(const Problem *problem, Pair *pair, int64_t n) {
    int32_t size = (int32_t)problem->group_size;
    int64_t m = problem->n_selected, n_networks = pair->n_ranked * size;
    for (int64_t i = 0; i < n; i++) score_members(problem, pair, i);
    for (int u = 0; u < TILE; u += LANES)
        rank(pair, pair->logits + u, n_networks, m, pair->selected + u * m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t t = 0; t < m; t++) {
            int32_t *at = pair->selected + i * m + t;
            *at = pair->groups[i * pair->n_ranked + *at / size] * size + *at % size;
        }
}

/* p = 2 ** (log2_scale * (logit - largest)) in place. */
INLINE void exponentials_chosen(Shape shape, const int32_t *selected, float *p, float largest,
                                float log2_scale) {
    vec shift = splat(-largest * log2_scale);
    for (int64_t t = 0; t < shape.n_selected; t++, p += shape.pitch)
        for (int64_t i = 0; i < members(shape, selected[t]); i += LANES)
            store(p + i, exp2_vec(load(p + i) * log2_scale + shift));
}

INLINE void mix_chosen(Shape shape, const Pair *pair, const int32_t *selected, const float *p,
                       float weight, int64_t part, float *out, const int n_vecs) {
    int64_t width = pair->width;
    vec even[2] = {{0}}, odd[2] = {{0}};
    for (int64_t t = 0; t < shape.n_selected; t++, p += shape.pitch) {
        const float *row = pair->v + selected[t] * shape.size * width + part;
        int64_t n = members(shape, selected[t]), i = 0;
        for (; i + 2 <= n; i += 2, row += 2 * width)
            for (int u = 0; u < n_vecs; u++) {
                even[u] += p[i] * load(row + u * LANES);
                odd[u] += p[i + 1] * load(row + width + u * LANES);
            }
        if (i < n)
            for (int u = 0; u < n_vecs; u++) even[u] += p[i] * load(row + u * LANES);
    }
    for (int u = 0; u < n_vecs; u++, out += LANES)
        store(out + part, load(out + part) + weight * (even[u] + odd[u]));
}

INLINE void forward_chosen(Shape shape, Pair *pair, const int32_t *selected, const float *q,
                           float *out, float gate, float *largest, float *inverse) {
    float *chosen = pair->chosen;
    score_chosen(shape, q, pair->kt, selected, pair->d_head, chosen);
    vec lowest = splat(-__builtin_inff()), top = lowest, total = {0};
    for (int64_t t = 0; t < shape.n_selected; t++) {
        int64_t n = members(shape, selected[t]);
        for (int64_t i = 0; i < n; i += LANES)
            top = max_vec(mask_tail(load(chosen + t * shape.pitch + i), n - i, lowest), top);
    }
    *largest = max_lanes(top);
    exponentials_chosen(shape, selected, chosen, *largest, pair->log2_scale);
    for (int64_t t = 0; t < shape.n_selected; t++) {
        int64_t n = members(shape, selected[t]);
        for (int64_t i = 0; i < n; i += LANES)
            total += mask_tail(load(chosen + t * shape.pitch + i), n - i, (vec){0});
    }
    *inverse = 1.0f / sum_lanes(total);

    int64_t part = 0;
    for (; part + TILE <= pair->width; part += TILE)
        mix_chosen(shape, pair, selected, chosen, gate * *inverse, part, out, 2);
    if (part < pair->width)
        mix_chosen(shape, pair, selected, chosen, gate * *inverse, part, out, 1);
}

INLINE int is_common(const Problem *problem, const int32_t *selected) {
    if (problem->block_size != 10 || problem->n_selected != 3) return 0;
    int64_t n_full = problem->n_features / 10;
    return selected[0] < n_full && selected[1] < n_full && selected[2] < n_full;
}

static const Shape COMMON = {10, 3, 0, (10 + LANES - 1) / LANES * LANES, 1};

INLINE Shape shape_of(const Problem *problem, const Pair *pair) {
    return (Shape){problem->block_size, problem->n_selected, problem->n_features, pair->pitch, 0};
}

static void forward_selected(const Problem *problem, Pair *pair, int64_t query, float gate,
                             float *largest, float *inverse) {
    const int32_t *selected = pair->selected + query * problem->n_selected;
    const float *q = pair->q + query * pair->width;
    float *out = pair->out + query * pair->width;
    if (is_common(problem, selected))
        forward_chosen(COMMON, pair, selected, q, out, gate, largest, inverse);
    else
        forward_chosen(shape_of(problem, pair), pair, selected, q, out, gate, largest, inverse);
}

static void load_gates(const Problem *problem, const Pair *pair, int64_t from, int64_t n,
                       float gates[3][TILE]) {
    memset(gates, 0, sizeof(float) * 3 * TILE);
    for (int branch = 0; branch < 3; branch++)
        for (int64_t i = 0; i < n; i++)
            gates[branch][i] =
                element(&problem->gates, pair, from + i)[branch * problem->gates.stride[3]];
}

static void forward_tile(const Problem *problem, Pair *pair, int64_t from) {
    int64_t left = pair->n_features - from, n = left < TILE ? left : TILE;
    int64_t index = pair->row * problem->n_heads + pair->head;
    int64_t m = problem->n_selected;
    int32_t *selected = problem->selected + (index * pair->n_features + from) * m;
    float gates[3][TILE], largest[3][TILE], inverse[3][TILE], weight[TILE];
    Strip strip;

    load_tile(&problem->q, pair, from, n, pair->q, pair->qt);
    load_gates(problem, pair, from, n, gates);
    memset(pair->out, 0, sizeof(float) * TILE * pair->width);

    forward_compressed(problem, pair, largest[COMPRESSED], inverse[COMPRESSED]);
    for (int i = 0; i < TILE; i++) weight[i] = gates[COMPRESSED][i] * inverse[COMPRESSED][i];
    mix(pair->logits, pair->v_cmp, pair->n_groups, pair->width, weight, pair->out, 0,
        pair->n_groups + TILE);
    if (problem->group_size > 1) select_members(problem, pair, n);
    memcpy(selected, pair->selected, sizeof(int32_t) * n * m);

    forward_window(problem, pair, from, largest[WINDOW], inverse[WINDOW], &strip);
    for (int i = 0; i < TILE; i++) weight[i] = gates[WINDOW][i] * inverse[WINDOW][i];
    mix(pair->logits, pair->v + strip.first * pair->width, strip.n, pair->width, weight, pair->out,
        strip.offset, problem->window_size);

    for (int64_t i = 0; i < n; i++)
        forward_selected(problem, pair, i, gates[SELECTED][i], &largest[SELECTED][i],
                         &inverse[SELECTED][i]);

    for (int branch = 0; branch < 3; branch++) {
        float *stats = problem->stats + (index * 6 + 2 * branch) * pair->n_features + from;
        memcpy(stats, largest[branch], sizeof(float) * n);
        memcpy(stats + pair->n_features, inverse[branch], sizeof(float) * n);
    }
    unpack_rows(pair->out, pair, from, n, &problem->out);
}

/* Probabilities and their gradients, in place, become the factors of values and of keys. */
INLINE vec softmax_backward(float *p, float *dp, int64_t n, vec gate, vec inverse, float scale) {
    vec delta = {0};
    for (int64_t j = 0; j < n; j++) delta += load(p + j * TILE) * load(dp + j * TILE);
    delta *= inverse;
    vec value_weight = gate * inverse, key_weight = value_weight * scale;
    for (int64_t j = 0; j < n; j++) {
        vec x = load(p + j * TILE);
        store(dp + j * TILE, x * (load(dp + j * TILE) - delta) * key_weight);
        store(p + j * TILE, x * value_weight);
    }
    return delta;
}

static void backward_compressed(Pair *pair, const float *gates, const float *largest,
                                const float *inverse, float *d_gates, const float *ones) {
    int64_t n = pair->n_groups, width = pair->width, wide = n + TILE;
    score(pair->qt, pair->k_cmp, n, pair->d_head, width, pair->logits, 2);
    score(pair->doutt, pair->v_cmp, n, pair->d_head, width, pair->dp, 2);
    for (int u = 0; u < TILE; u += LANES) {
        exponentials(pair->logits + u, n, load(largest + u), pair->log2_scale);
        store(d_gates + u, softmax_backward(pair->logits + u, pair->dp + u, n, load(gates + u),
                                            load(inverse + u), pair->scale));
    }
    memset(pair->logits + n * TILE, 0, sizeof(float) * 8 * TILE);
    memset(pair->dp + n * TILE, 0, sizeof(float) * 8 * TILE);
    mix(pair->dp, pair->k_cmp, n, width, ones, pair->dq, 0, wide);
    spread(pair->dp, pair->q, n, width, pair->dk_cmp, 0, wide);
    spread(pair->logits, pair->dout, n, width, pair->dv_cmp, 0, wide);
}

static void backward_window(const Problem *problem, Pair *pair, int64_t from, const float *gates,
                            const float *largest, const float *inverse, float *d_gates,
                            const float *ones) {
    int64_t width = pair->width;
    Strip whole = strip_of(problem, from, TILE);
    for (int u = 0; u < TILE; u += LANES) {
        Strip strip = strip_of(problem, from + u, LANES);
        int64_t skipped = strip.n ? strip.first - whole.first : 0;
        float *p = pair->logits + skipped * TILE + u, *dp = pair->dp + skipped * TILE + u;
        vec shift = -load(largest + u) * pair->log2_scale;
        score(pair->qt + u, pair->k + strip.first * width, strip.n, pair->d_head, width, p, 1);
        score(pair->doutt + u, pair->v + strip.first * width, strip.n, pair->d_head, width, dp, 1);
        for (int64_t j = 0; j < strip.n; j++) {
            vec x = exp2_vec(load(p + j * TILE) * pair->log2_scale + shift);
            store(p + j * TILE, choose(near(problem, strip.offset + j), x, (vec){0}));
        }
        store(d_gates + u, softmax_backward(p, dp, strip.n, load(gates + u), load(inverse + u),
                                            pair->scale));
        for (int64_t j = 0; j < whole.n + 8; j++)
            if (j < skipped || j >= skipped + strip.n) {
                store(pair->logits + j * TILE + u, (vec){0});
                store(pair->dp + j * TILE + u, (vec){0});
            }
    }
    mix(pair->dp, pair->k + whole.first * width, whole.n, width, ones, pair->dq, whole.offset,
        problem->window_size);
    spread(pair->dp, pair->q, whole.n, width, pair->dk + whole.first * width, whole.offset,
           problem->window_size);
    spread(pair->logits, pair->dout, whole.n, width, pair->dv + whole.first * width, whole.offset,
           problem->window_size);
}

/* dq += sum_j dp_j k_j, dk_j += dp_j q, dv_j += p_j dout for the selected keys j of one query. */
INLINE void update_chosen(Shape shape, const Pair *pair, const int32_t *selected, const float *q,
                          const float *dout, float *dq, int64_t part, const int n_vecs) {
    const float *p = pair->chosen, *dp = pair->chosen_dp;
    int64_t width = pair->width;
    vec q_row[2], dout_row[2], sum[2] = {{0}}, other[2] = {{0}};
    for (int u = 0; u < n_vecs; u++) {
        q_row[u] = load(q + part + u * LANES);
        dout_row[u] = load(dout + part + u * LANES);
    }
    for (int64_t t = 0; t < shape.n_selected; t++, p += shape.pitch, dp += shape.pitch) {
        int64_t n = members(shape, selected[t]);
        int64_t first = selected[t] * shape.size * width + part;
        const float *k = pair->k + first;
        float *dk = pair->dk + first, *dv = pair->dv + first;
        for (int64_t i = 0; i < n; i++, k += width, dk += width, dv += width)
            for (int u = 0; u < n_vecs; u++) {
                vec next = other[u] + dp[i] * load(k + u * LANES);
                other[u] = sum[u]; /* two chains of sums hide the latency of the addition */
                sum[u] = next;
                store(dk + u * LANES, load(dk + u * LANES) + dp[i] * q_row[u]);
                store(dv + u * LANES, load(dv + u * LANES) + p[i] * dout_row[u]);
            }
    }
    for (int u = 0; u < n_vecs; u++, dq += LANES)
        store(dq + part, load(dq + part) + (sum[u] + other[u]));
}

INLINE float backward_chosen(Shape shape, Pair *pair, const int32_t *selected, const float *q,
                             const float *dout, float *dq, float gate, float largest,
                             float inverse) {
    float *p = pair->chosen, *dp = pair->chosen_dp;
    score_chosen(shape, q, pair->kt, selected, pair->d_head, p);
    score_chosen(shape, dout, pair->vt, selected, pair->d_head, dp);
    exponentials_chosen(shape, selected, p, largest, pair->log2_scale);
    vec sum = {0};
    for (int64_t t = 0; t < shape.n_selected; t++) {
        int64_t n = members(shape, selected[t]);
        for (int64_t i = t * shape.pitch; n > 0; i += LANES, n -= LANES)
            sum += mask_tail(load(p + i) * load(dp + i), n, (vec){0});
    }
    float delta = sum_lanes(sum) * inverse;
    float value_weight = gate * inverse, key_weight = value_weight * pair->scale;
    for (int64_t j = 0; j < shape.n_selected * shape.pitch; j += LANES) {
        store(dp + j, load(p + j) * (load(dp + j) - delta) * key_weight);
        store(p + j, load(p + j) * value_weight);
    }
    int64_t part = 0;
    for (; part + TILE <= pair->width; part += TILE)
        update_chosen(shape, pair, selected, q, dout, dq, part, 2);
    if (part < pair->width) update_chosen(shape, pair, selected, q, dout, dq, part, 1);
    return delta;
}

static float backward_selected(const Problem *problem, Pair *pair, int64_t query, float gate,
                               float largest, float inverse) {
    const int32_t *selected = pair->selected + query * problem->n_selected;
    const float *q = pair->q + query * pair->width, *dout = pair->dout + query * pair->width;
    float *dq = pair->dq + query * pair->width;
    if (is_common(problem, selected))
        return backward_chosen(COMMON, pair, selected, q, dout, dq, gate, largest, inverse);
    return backward_chosen(shape_of(problem, pair), pair, selected, q, dout, dq, gate, largest,
                           inverse);
}

static void backward_tile(const Problem *problem, Pair *pair, int64_t from) {
    int64_t left = pair->n_features - from, n = left < TILE ? left : TILE;
    int64_t index = pair->row * problem->n_heads + pair->head;
    int64_t m = problem->n_selected;
    float gates[3][TILE], largest[3][TILE], inverse[3][TILE], d_gates[3][TILE], ones[TILE];

    load_tile(&problem->q, pair, from, n, pair->q, pair->qt);
    load_tile(&problem->d_out, pair, from, n, pair->dout, pair->doutt);
    load_gates(problem, pair, from, n, gates);
    memset(pair->dq, 0, sizeof(float) * TILE * pair->width);
    memset(largest, 0, sizeof largest);
    memset(inverse, 0, sizeof inverse);
    for (int branch = 0; branch < 3; branch++) {
        const float *stats = problem->stats + (index * 6 + 2 * branch) * pair->n_features + from;
        memcpy(largest[branch], stats, sizeof(float) * n);
        memcpy(inverse[branch], stats + pair->n_features, sizeof(float) * n);
    }
    for (int i = 0; i < TILE; i++) ones[i] = 1.0f;
    memcpy(pair->selected, problem->selected + (index * pair->n_features + from) * m,
           sizeof(int32_t) * n * m);

    backward_compressed(pair, gates[COMPRESSED], largest[COMPRESSED], inverse[COMPRESSED],
                        d_gates[COMPRESSED], ones);
    backward_window(problem, pair, from, gates[WINDOW], largest[WINDOW], inverse[WINDOW],
                    d_gates[WINDOW], ones);
    for (int64_t i = 0; i < n; i++)
        d_gates[SELECTED][i] =
            backward_selected(problem, pair, i, gates[SELECTED][i], largest[SELECTED][i],
                              inverse[SELECTED][i]);

    unpack_rows(pair->dq, pair, from, n, &problem->dq);
    for (int branch = 0; branch < 3; branch++)
        for (int64_t i = 0; i < n; i++)
            element(&problem->d_gates, pair, from + i)[branch * problem->d_gates.stride[3]] =
                d_gates[branch][i];
}

static void run_pair(const Problem *problem, Pair *pair, int64_t index, int backward) {
    pair->row = index / problem->n_heads;
    pair->head = index % problem->n_heads;
    pack_rows(&problem->k, pair, pair->n_features, pair->k);
    pack_rows(&problem->v, pair, pair->n_features, pair->v);
    pack_means(problem, &problem->k_cmp, pair, pair->k_cmp);
    pack_means(problem, &problem->v_cmp, pair, pair->v_cmp);
    transpose_blocks(pair->k, pair, problem->block_size, pair->kt);
    if (!backward) {
        if (problem->group_size > 1)
            transpose_groups(problem, &problem->k_cmp, pair, pair->kt_cmp);
        for (int64_t i = 0; i < pair->n_features; i += TILE) forward_tile(problem, pair, i);
        return;
    }
    transpose_blocks(pair->v, pair, problem->block_size, pair->vt);
    memset(pair->dk, 0, sizeof(float) * pair->n_keys * pair->width);
    memset(pair->dv, 0, sizeof(float) * pair->n_keys * pair->width);
    memset(pair->dk_cmp, 0, sizeof(float) * pair->n_groups * pair->width);
    memset(pair->dv_cmp, 0, sizeof(float) * pair->n_groups * pair->width);
    for (int64_t i = 0; i < pair->n_features; i += TILE) backward_tile(problem, pair, i);
    unpack_rows(pair->dk, pair, 0, pair->n_features, &problem->dk);
    unpack_rows(pair->dv, pair, 0, pair->n_features, &problem->dv);
    unpack_means(problem, pair->dk_cmp, pair, &problem->dk_cmp);
    unpack_means(problem, pair->dv_cmp, pair, &problem->dv_cmp);
}

/* ---- memory and threads ---- */

#define SHELVES 4
#define MAX_KEPT (1 << 23) /* bytes that are not given back to the system between calls */

/* Scratch memory of earlier calls: fresh pages from the system cost a small call a tenth of its
 * time. Content is whatever it was. */
static char *shelf[SHELVES]; /* the size stands before the memory */

static char *borrow(size_t size) {
    size = (size + 63) / 64 * 64;
    for (int i = 0; i < SHELVES; i++) {
        char *kept = __atomic_exchange_n(&shelf[i], NULL, __ATOMIC_ACQUIRE);
        if (!kept) continue;
        size_t kept_size = *(size_t *)kept;
        if (kept_size >= size) return kept + 64;
        free(kept);
    }
    void *memory = NULL;
    if (posix_memalign(&memory, 64, size + 64)) return NULL;
    *(size_t *)memory = size;
    return (char *)memory + 64;
}

static void give_back(char *memory) {
    if (!memory) return;
    memory -= 64;
    if (*(size_t *)memory > MAX_KEPT) {
        free(memory);
        return;
    }
    for (int i = 0; i < SHELVES; i++) {
        char *none = NULL;
        if (__atomic_compare_exchange_n(&shelf[i], &none, memory, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return;
    }
    free(memory);
}

typedef void (*Parallel)(void (*)(void *), void *, unsigned n, unsigned flags);

typedef struct {
    void (*work)(void *);
    void *argument;
} Call;

static void *run_call(void *call) {
    ((Call *)call)->work(((Call *)call)->argument);
    return NULL;
}

/* Runs work on n threads of the pool if there is one, else on threads that live for one call:
 * nothing is left behind that a fork could break. */
static void run_threads(void (*work)(void *), void *argument, int64_t n_threads,
                        Parallel parallel) {
    pthread_t threads[MAX_THREADS];
    Call call = {work, argument};
    int n = 0;
    if (n_threads > 1 && parallel) {
        parallel(work, argument, (unsigned)n_threads, 0);
        return;
    }
    while (n < n_threads - 1 && n < MAX_THREADS &&
           !pthread_create(&threads[n], NULL, run_call, &call))
        n++;
    work(argument);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

typedef struct {
    const Problem *problem;
    int backward;
    int64_t next;
} Job;

/* Hands out pieces of one allocation, each on a cache line; with base NULL only counts. */
INLINE void *take(char *base, size_t *used, int64_t n_floats) {
    void *piece = base ? base + *used : NULL;
    *used += ((size_t)n_floats * sizeof(float) + 63) / 64 * 64;
    return piece;
}

static size_t lay_out(const Problem *problem, Pair *pair, char *base) {
    size_t used = 0;
    int64_t size = problem->block_size, m = problem->n_selected;
    int64_t d_head = problem->d_head, width = (d_head + LANES - 1) / LANES * LANES;
    int64_t n_blocks = (problem->n_features + size - 1) / size;
    int64_t rows = (n_blocks * size + 8) * width;
    int64_t columns = n_blocks * size * d_head + size + 2 * LANES;
    int64_t group_size = problem->group_size;
    int64_t n_groups = (problem->n_compressed + group_size - 1) / group_size;
    int64_t rows_cmp = (n_groups + 8) * width;
    int64_t columns_cmp = group_size > 1 ? (n_groups * d_head + 1) * group_size + 2 * LANES : 0;
    int64_t strip = 2 * problem->window_size + TILE;
    strip = strip < problem->n_features ? strip : problem->n_features;
    int64_t n_logits = strip > n_groups ? strip : n_groups;
    n_logits = problem->n_slots && n_blocks > n_logits ? n_blocks : n_logits;
    int64_t n_ranked = m < n_groups ? m : n_groups, n_networks = n_ranked * group_size;
    n_logits = group_size > 1 && n_networks > n_logits ? n_networks : n_logits;
    int64_t pitch = (size + LANES - 1) / LANES * LANES;
    int64_t group_pitch = (group_size + LANES - 1) / LANES * LANES;

    pair->d_head = d_head;
    pair->width = width;
    pair->n_features = problem->n_features;
    pair->n_keys = n_blocks * size;
    pair->n_groups = n_groups;
    pair->n_blocks = n_blocks;
    pair->n_ranked = n_ranked;
    pair->pitch = pitch;
    pair->group_pitch = group_pitch;
    pair->scale = 1.0f / __builtin_sqrtf((float)d_head);
    pair->log2_scale = pair->scale * 1.44269504f;
    pair->k = take(base, &used, rows);
    pair->v = take(base, &used, rows);
    pair->dk = take(base, &used, rows);
    pair->dv = take(base, &used, rows);
    pair->kt = take(base, &used, columns);
    pair->vt = take(base, &used, columns);
    pair->k_cmp = take(base, &used, rows_cmp);
    pair->v_cmp = take(base, &used, rows_cmp);
    pair->dk_cmp = take(base, &used, rows_cmp);
    pair->dv_cmp = take(base, &used, rows_cmp);
    pair->kt_cmp = take(base, &used, columns_cmp);
    pair->q = take(base, &used, TILE * width);
    pair->dout = take(base, &used, TILE * width);
    pair->out = take(base, &used, TILE * width);
    pair->dq = take(base, &used, TILE * width);
    pair->qt = take(base, &used, TILE * d_head);
    pair->doutt = take(base, &used, TILE * d_head);
    pair->logits = take(base, &used, (n_logits + 8) * TILE);
    pair->dp = take(base, &used, (n_logits + 8) * TILE);
    pair->chosen = take(base, &used, m * pitch);
    pair->chosen_dp = take(base, &used, m * pitch);
    pair->members = take(base, &used, n_ranked * group_pitch);
    pair->best = take(base, &used, m * LANES);
    pair->best_at = take(base, &used, m * LANES);
    pair->groups = take(base, &used, n_ranked * TILE);
    pair->selected = take(base, &used, m * TILE);
    return used;
}

static void work(void *argument) {
    Job *job = argument;
    const Problem *problem = job->problem;
    Pair pair;
    void *memory = NULL;
    size_t size = lay_out(problem, &pair, NULL);
    if (posix_memalign(&memory, 64, size)) return; /* the other threads take over */
    memset(memory, 0, size); /* padding must be zeros, and finite */
    lay_out(problem, &pair, memory);
    int64_t n_pairs = problem->n_rows * problem->n_heads;
    for (;;) {
        int64_t index = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (index >= n_pairs) break;
        run_pair(problem, &pair, index, job->backward);
    }
    free(memory);
}

/* Returns 0 on success, 1 when memory ran out. */
__attribute__((visibility("default"))) int tabnsm_sparse_attention(const Problem *problem,
                                                                   int backward) {
    Job job = {problem, backward, 0};
    run_threads(work, &job, problem->n_threads, problem->parallel);
    return job.next < problem->n_rows * problem->n_heads;
}

/* The widest variant that this machine can run: 2 AVX-512, 1 AVX2 with FMA, 0 neither. */
__attribute__((visibility("default"))) int tabnsm_cpu_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return avx2 + (avx2 && __builtin_cpu_supports("avx512f"));
#else
    return 0;
#endif
}
