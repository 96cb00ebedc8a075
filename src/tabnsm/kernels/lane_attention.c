/* Sparse attention of LANES rows at once, for tables that are not wide.
 *
 * Rows select different blocks, so that a query meets every block that one of its rows selects, and
 * lanes of rows that do not are masked. In a narrow table these are few blocks more than a row alone
 * would meet, or none. The window is a stretch of the same logits: a key's product with a query
 * serves both branches, and its two probabilities are joined before the product with the values.
 */

#define QUERIES 4 /* whose logits are in memory together */
#if defined(__AVX512F__)
#define KEYS 6
#else
#define KEYS 2
#endif
#define COMPONENTS 4
#define MAX_LANE_SELECTED 16 /* as MAX_NARROW_SELECTED in kernels/interaction.py */

/* One head of LANES rows. Features are `pitch` floats apart, those of keys and values also. */
typedef struct {
    const Problem *problem;
    int64_t n_features, d_head, n_blocks, pitch, cmp_pitch, gate_pitch, out_pitch;
    float scale, log2_scale;
    const float *q, *k, *v, *k_cmp, *v_cmp, *gates, *d_out;
    float *out, *dq, *dk, *dv, *dk_cmp, *dv_cmp, *d_gates;
    float *stats;      /* [query][6]: largest logit and inverse sum per branch; or NULL */
    int32_t *selected; /* [query][rank], in vectors */
    /* of QUERIES queries */
    float *logits, *dp;         /* [query][key] */
    float *cmp_logits, *cmp_dp; /* [query][block] */
    float *window;              /* [key] */
    ivec *mask;                 /* [query][block]: rows that select it */
    int32_t *keys, *blocks, *first; /* met by some query: features, blocks, place of a block's keys */
    int64_t n_keys, n_met;
    int32_t *count; /* 0, 1, 2, ... */
} Heads;

INLINE void score_keys(const float *const *x, const float *y, int64_t y_pitch, const int32_t *keys,
                       int64_t d_head, float *out, int64_t n, const int n_keys) {
    vec sum[QUERIES][KEYS] = {{{0}}};
    const float *row[KEYS];
    for (int j = 0; j < n_keys; j++) row[j] = y + keys[j] * y_pitch;
    for (int64_t c = 0; c < d_head; c++) {
        vec query[QUERIES];
        for (int i = 0; i < QUERIES; i++) query[i] = load(x[i] + c * LANES);
        for (int j = 0; j < n_keys; j++) {
            vec key = load(row[j] + c * LANES);
            for (int i = 0; i < QUERIES; i++) sum[i][j] += query[i] * key;
        }
    }
    for (int i = 0; i < QUERIES; i++)
        for (int j = 0; j < n_keys; j++) store(out + (i * n + j) * LANES, sum[i][j]);
}

/* out[query][j] = sum_c x[query][c] y[keys[j]][c]; past the last query it is that of the last. */
static void lane_scores(const float *x, int64_t x_pitch, int64_t n_queries, const float *y,
                        int64_t y_pitch, const int32_t *keys, int64_t n, int64_t d_head,
                        float *out) {
    const float *query[QUERIES];
    for (int i = 0; i < QUERIES; i++) query[i] = x + least(i, n_queries - 1) * x_pitch;
    int64_t j = 0;
    for (; j + KEYS <= n; j += KEYS)
        score_keys(query, y, y_pitch, keys + j, d_head, out + j * LANES, n, KEYS);
    for (; j + 2 <= n; j += 2)
        score_keys(query, y, y_pitch, keys + j, d_head, out + j * LANES, n, 2);
    if (j < n) score_keys(query, y, y_pitch, keys + j, d_head, out + j * LANES, n, 1);
}

/* out[query] = or += sum_j p[query][j] y[keys[j]]. */
static void lane_mix(const float *p, int64_t n, int64_t n_queries, const float *y, int64_t y_pitch,
                     const int32_t *keys, int64_t d_head, float *out, int64_t out_pitch, int add) {
    for (int64_t c = 0; c < d_head; c += COMPONENTS) {
        vec sum[QUERIES][COMPONENTS] = {{{0}}};
        for (int64_t j = 0; j < n; j++) {
            const float *row = y + keys[j] * y_pitch + c * LANES;
            for (int i = 0; i < QUERIES; i++) {
                vec weight = load(p + (i * n + j) * LANES);
                for (int u = 0; u < COMPONENTS; u++)
                    sum[i][u] += weight * load(row + u * LANES);
            }
        }
        for (int i = 0; i < QUERIES && i < n_queries; i++)
            for (int u = 0; u < COMPONENTS; u++) {
                float *to = out + i * out_pitch + (c + u) * LANES;
                store(to, add ? load(to) + sum[i][u] : sum[i][u]);
            }
    }
}

/* dy[keys[j]] += sum_query p[query][j] x[query]; p is zero past the last query. */
static void lane_spread(const float *p, int64_t n, int64_t n_queries, const float *x,
                        int64_t x_pitch, const int32_t *keys, int64_t d_head, float *dy,
                        int64_t dy_pitch) {
    for (int64_t c = 0; c < d_head; c += COMPONENTS) {
        vec query[QUERIES][COMPONENTS];
        for (int i = 0; i < QUERIES; i++)
            for (int u = 0; u < COMPONENTS; u++)
                query[i][u] = load(x + least(i, n_queries - 1) * x_pitch + (c + u) * LANES);
        for (int64_t j = 0; j < n; j++) {
            float *to = dy + keys[j] * dy_pitch + c * LANES;
            vec sum[COMPONENTS];
            for (int u = 0; u < COMPONENTS; u++) sum[u] = load(to + u * LANES);
            for (int i = 0; i < QUERIES; i++) {
                vec weight = load(p + (i * n + j) * LANES);
                for (int u = 0; u < COMPONENTS; u++) sum[u] += weight * query[i][u];
            }
            for (int u = 0; u < COMPONENTS; u++) store(to + u * LANES, sum[u]);
        }
    }
}

/* ---- selection ---- */

INLINE vec rank_lanes(const float *logits, int64_t n, ivec *at, const int64_t m) {
    vec best[MAX_LANE_SELECTED];
    for (int64_t t = 0; t < m; t++) {
        best[t] = splat(-__builtin_inff());
        at[t] = (int32_t)t - (ivec){0};
    }
    for (int64_t j = 0; j < n; j++) {
        vec x = load(logits + j * LANES), falling = x;
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

/* The blocks that each row selects for each query, best first, from the compressed logits. */
static void select_blocks(Heads *h, int64_t from, int64_t n_queries) {
    int64_t m = h->problem->n_selected, n = h->n_blocks;
    for (int64_t i = 0; i < n_queries; i++) {
        ivec at[MAX_LANE_SELECTED];
        const float *logits = h->cmp_logits + i * n * LANES;
        if (m == 3)
            rank_lanes(logits, n, at, 3);
        else
            rank_lanes(logits, n, at, m);
        memcpy(h->selected + (from + i) * m * LANES, at, sizeof(ivec) * m);
    }
}

/* Sets `first` of all blocks in n vectors of selected ones. */
INLINE void mark_selected(Heads *h, const int32_t *selected, int64_t n) {
    if (h->n_blocks > 32) {
        for (int64_t i = 0; i < n * LANES; i++) h->first[selected[i]] = 1;
        return;
    }
    ivec bits = {0};
    int32_t all = 0;
    for (int64_t i = 0; i < n; i++)
        bits |= (1 - (ivec){0}) << *(const loose_ivec *)(selected + i * LANES);
    for (int i = 0; i < LANES; i++) all |= bits[i];
    for (int64_t b = 0; b < h->n_blocks; b++) h->first[b] |= all >> b & 1;
}

/* Which blocks and keys these queries meet: those in a window, and those that a row selects. */
static void meet_blocks(Heads *h, int64_t from, int64_t n_queries) {
    const Problem *p = h->problem;
    int64_t m = p->n_selected, size = p->block_size, all = m >= h->n_blocks;
    int64_t begin = from - p->window_size, end = from + n_queries - 1 + p->window_size;
    begin = (begin > 0 ? begin : 0) / size;
    end = least(end, h->n_features - 1) / size;
    const int32_t *selected = h->selected + from * m * LANES;
    for (int64_t b = 0; b < h->n_blocks; b++) h->first[b] = all || (b >= begin && b <= end);
    if (!all) mark_selected(h, selected, n_queries * m);
    h->n_keys = h->n_met = 0;
    for (int64_t b = 0; b < h->n_blocks; b++) {
        if (!h->first[b]) continue;
        h->first[b] = (int32_t)h->n_keys;
        h->blocks[h->n_met++] = (int32_t)b;
        for (int64_t j = b * size; j < (b + 1) * size && j < h->n_features; j++)
            h->keys[h->n_keys++] = (int32_t)j;
    }
    for (int64_t i = 0; i < n_queries; i++)
        for (int64_t b = 0; b < h->n_met; b++) {
            ivec mask = -(int32_t)all - (ivec){0};
            const int32_t *at = selected + i * m * LANES;
            for (int64_t t = 0; !all && t < m; t++)
                mask |= (ivec)(*(const loose_ivec *)(at + t * LANES) == h->blocks[b]);
            h->mask[i * h->n_blocks + b] = mask;
        }
}

/* A stretch of the keys that are met. */
typedef struct {
    int64_t first, n;
} Span;

/* That of the block that is met as number b. */
INLINE Span keys_of(const Heads *h, int64_t b) {
    int64_t size = h->problem->block_size, block = h->blocks[b];
    return (Span){h->first[block], least(size, h->n_features - block * size)};
}

INLINE Span window_of(const Heads *h, int64_t query) {
    int64_t size = h->problem->block_size, reach = h->problem->window_size;
    int64_t begin = query > reach ? query - reach : 0;
    int64_t end = least(query + reach, h->n_features - 1), b = begin / size;
    return (Span){h->first[b] + begin - b * size, end - begin + 1};
}

/* ---- forward ---- */

INLINE vec largest_of(const float *logits, int64_t n, vec top) {
    for (int64_t j = 0; j < n; j++) top = max_vec(load(logits + j * LANES), top);
    return top;
}

INLINE vec masked(ivec mask, vec x) { return (vec)((ivec)x & mask); }

/* Largest logit and inverse sum of a branch, kept for the backward pass. */
INLINE void keep_stats(const Heads *h, int64_t query, int branch, vec largest, vec inverse) {
    if (!h->stats) return;
    store(h->stats + (query * 6 + 2 * branch) * LANES, largest);
    store(h->stats + (query * 6 + 2 * branch + 1) * LANES, inverse);
}

INLINE vec gate_of(const Heads *h, int64_t query, int branch) {
    return load(h->gates + query * h->gate_pitch + branch * LANES);
}

static void weigh_compressed(Heads *h, int64_t query, float *logits) {
    vec top = largest_of(logits, h->n_blocks, splat(-__builtin_inff())), sum = {0};
    vec shift = -top * h->log2_scale;
    for (int64_t j = 0; j < h->n_blocks; j++) {
        vec p = exp2_vec(load(logits + j * LANES) * h->log2_scale + shift);
        store(logits + j * LANES, p);
        sum += p;
    }
    vec inverse = 1.0f / sum, weight = inverse * gate_of(h, query, COMPRESSED);
    for (int64_t j = 0; j < h->n_blocks; j++)
        store(logits + j * LANES, load(logits + j * LANES) * weight);
    keep_stats(h, query, COMPRESSED, top, inverse);
}

/* Logits of one query become the joint weights of the keys in both other branches. */
static void weigh_keys(Heads *h, int64_t query, float *logits, const ivec *mask) {
    Span span = window_of(h, query);
    float *near = logits + span.first * LANES, *window = h->window, log2_scale = h->log2_scale;
    vec lowest = splat(-__builtin_inff()), top = largest_of(near, span.n, lowest), sum = {0};
    vec shift = -top * h->log2_scale;
    for (int64_t j = 0; j < span.n; j++) {
        vec p = exp2_vec(load(near + j * LANES) * log2_scale + shift);
        store(window + j * LANES, p);
        sum += p;
    }
    vec near_inverse = 1.0f / sum;
    keep_stats(h, query, WINDOW, top, near_inverse);

    top = lowest;
    sum = (vec){0};
    for (int64_t b = 0; b < h->n_met; b++) {
        Span keys = keys_of(h, b);
        vec high = largest_of(logits + keys.first * LANES, keys.n, lowest);
        top = max_vec(choose(mask[b], high, top), top);
    }
    shift = -top * h->log2_scale;
    for (int64_t b = 0; b < h->n_met; b++) {
        Span keys = keys_of(h, b);
        float *x = logits + keys.first * LANES, scale = h->log2_scale;
        ivec seen = mask[b];
        for (int64_t j = 0; j < keys.n; j++) {
            vec p = masked(seen, exp2_vec(load(x + j * LANES) * scale + shift));
            store(x + j * LANES, p);
            sum += p;
        }
    }
    vec inverse = 1.0f / sum, weight = inverse * gate_of(h, query, SELECTED);
    keep_stats(h, query, SELECTED, top, inverse);
    for (int64_t j = 0, n = h->n_keys; j < n; j++)
        store(logits + j * LANES, load(logits + j * LANES) * weight);
    weight = near_inverse * gate_of(h, query, WINDOW);
    for (int64_t j = 0; j < span.n; j++)
        store(near + j * LANES, load(near + j * LANES) + weight * load(window + j * LANES));
}

static void attend_queries(Heads *h, int64_t from) {
    int64_t n = least(QUERIES, h->n_features - from), n_cmp = h->n_blocks, d_head = h->d_head;
    const float *q = h->q + from * h->pitch;
    float *out = h->out + from * h->out_pitch;
    lane_scores(q, h->pitch, n, h->k_cmp, h->cmp_pitch, h->count, n_cmp, d_head, h->cmp_logits);
    if (h->problem->n_selected < n_cmp) select_blocks(h, from, n);
    for (int64_t i = 0; i < n; i++)
        weigh_compressed(h, from + i, h->cmp_logits + i * n_cmp * LANES);
    lane_mix(h->cmp_logits, n_cmp, n, h->v_cmp, h->cmp_pitch, h->count, d_head, out, h->out_pitch,
             0);
    meet_blocks(h, from, n);
    lane_scores(q, h->pitch, n, h->k, h->pitch, h->keys, h->n_keys, d_head, h->logits);
    for (int64_t i = 0; i < n; i++)
        weigh_keys(h, from + i, h->logits + i * h->n_keys * LANES, h->mask + i * h->n_blocks);
    lane_mix(h->logits, h->n_keys, n, h->v, h->pitch, h->keys, d_head, out, h->out_pitch, 1);
}

/* ---- backward ---- */

/* One branch's softmax: exponentials and gradients of probabilities, in place, become what values
 * and keys are multiplied with. Returns the gradient of the gate, sum_j p_j dp_j. */
INLINE vec lane_softmax_back(float *p, float *dp, int64_t n, vec dot, vec gate, vec inverse,
                             float scale) {
    vec delta = dot * inverse, weight = gate * inverse;
    for (int64_t j = 0; j < n; j++) {
        vec x = load(p + j * LANES) * weight;
        store(p + j * LANES, x);
        store(dp + j * LANES, x * (load(dp + j * LANES) - delta) * scale);
    }
    return delta;
}

static void unweigh_compressed(Heads *h, int64_t query, float *p, float *dp) {
    const float *stats = h->stats + (query * 6 + 2 * COMPRESSED) * LANES;
    vec shift = -load(stats) * h->log2_scale, dot = {0};
    for (int64_t j = 0; j < h->n_blocks; j++) {
        vec x = exp2_vec(load(p + j * LANES) * h->log2_scale + shift);
        store(p + j * LANES, x);
        dot += x * load(dp + j * LANES);
    }
    vec delta = lane_softmax_back(p, dp, h->n_blocks, dot, gate_of(h, query, COMPRESSED),
                                  load(stats + LANES), h->scale);
    float *d_gate = h->d_gates + query * h->gate_pitch + COMPRESSED * LANES;
    store(d_gate, load(d_gate) + delta);
}

static void unweigh_keys(Heads *h, int64_t query, float *p, float *dp, const ivec *mask) {
    Span span = window_of(h, query);
    const float *stats = h->stats + query * 6 * LANES;
    float *d_gate = h->d_gates + query * h->gate_pitch, *window = h->window;
    float *window_dp = window + h->n_features * LANES, log2_scale = h->log2_scale;
    vec shift = -load(stats + 2 * WINDOW * LANES) * h->log2_scale, dot = {0};
    for (int64_t j = 0; j < span.n; j++) {
        vec x = exp2_vec(load(p + (span.first + j) * LANES) * log2_scale + shift);
        vec dx = load(dp + (span.first + j) * LANES);
        store(window + j * LANES, x);
        store(window_dp + j * LANES, dx);
        dot += x * dx;
    }
    vec delta = lane_softmax_back(window, window_dp, span.n, dot, gate_of(h, query, WINDOW),
                                  load(stats + (2 * WINDOW + 1) * LANES), h->scale);
    store(d_gate + WINDOW * LANES, load(d_gate + WINDOW * LANES) + delta);

    shift = -load(stats + 2 * SELECTED * LANES) * h->log2_scale;
    dot = (vec){0};
    for (int64_t b = 0; b < h->n_met; b++) {
        Span keys = keys_of(h, b);
        ivec seen = mask[b];
        for (int64_t j = keys.first; j < keys.first + keys.n; j++) {
            vec x = masked(seen, exp2_vec(load(p + j * LANES) * log2_scale + shift));
            store(p + j * LANES, x);
            dot += x * load(dp + j * LANES);
        }
    }
    delta = lane_softmax_back(p, dp, h->n_keys, dot, gate_of(h, query, SELECTED),
                              load(stats + (2 * SELECTED + 1) * LANES), h->scale);
    store(d_gate + SELECTED * LANES, load(d_gate + SELECTED * LANES) + delta);
    for (int64_t j = 0; j < span.n; j++) {
        float *x = p + (span.first + j) * LANES, *dx = dp + (span.first + j) * LANES;
        store(x, load(x) + load(window + j * LANES));
        store(dx, load(dx) + load(window_dp + j * LANES));
    }
}

static void attend_queries_back(Heads *h, int64_t from) {
    int64_t n = least(QUERIES, h->n_features - from), n_cmp = h->n_blocks, d_head = h->d_head;
    const float *q = h->q + from * h->pitch, *d_out = h->d_out + from * h->out_pitch;
    float *dq = h->dq + from * h->pitch, *p = h->cmp_logits, *dp = h->cmp_dp;
    lane_scores(q, h->pitch, n, h->k_cmp, h->cmp_pitch, h->count, n_cmp, d_head, p);
    lane_scores(d_out, h->out_pitch, n, h->v_cmp, h->cmp_pitch, h->count, n_cmp, d_head, dp);
    for (int64_t i = 0; i < n; i++)
        unweigh_compressed(h, from + i, p + i * n_cmp * LANES, dp + i * n_cmp * LANES);
    memset(p + n * n_cmp * LANES, 0, sizeof(vec) * (QUERIES - n) * n_cmp);
    memset(dp + n * n_cmp * LANES, 0, sizeof(vec) * (QUERIES - n) * n_cmp);
    lane_mix(dp, n_cmp, n, h->k_cmp, h->cmp_pitch, h->count, d_head, dq, h->pitch, 0);
    lane_spread(dp, n_cmp, n, q, h->pitch, h->count, d_head, h->dk_cmp, h->cmp_pitch);
    lane_spread(p, n_cmp, n, d_out, h->out_pitch, h->count, d_head, h->dv_cmp, h->cmp_pitch);

    meet_blocks(h, from, n);
    int64_t n_keys = h->n_keys;
    p = h->logits;
    dp = h->dp;
    lane_scores(q, h->pitch, n, h->k, h->pitch, h->keys, n_keys, d_head, p);
    lane_scores(d_out, h->out_pitch, n, h->v, h->pitch, h->keys, n_keys, d_head, dp);
    for (int64_t i = 0; i < n; i++)
        unweigh_keys(h, from + i, p + i * n_keys * LANES, dp + i * n_keys * LANES,
                     h->mask + i * h->n_blocks);
    memset(p + n * n_keys * LANES, 0, sizeof(vec) * (QUERIES - n) * n_keys);
    memset(dp + n * n_keys * LANES, 0, sizeof(vec) * (QUERIES - n) * n_keys);
    lane_mix(dp, n_keys, n, h->k, h->pitch, h->keys, d_head, dq, h->pitch, 1);
    lane_spread(dp, n_keys, n, q, h->pitch, h->keys, d_head, h->dk, h->pitch);
    lane_spread(p, n_keys, n, d_out, h->out_pitch, h->keys, d_head, h->dv, h->pitch);
}
