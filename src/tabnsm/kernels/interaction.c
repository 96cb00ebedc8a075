/* The whole interaction module (ASIM) on the CPU, forward and backward.
 *
 * Rows of wide tables go one at a time, which this file is about; narrow.c has the other path.
 * A row of 400 features in 32 dimensions is 50 KB: everything between its tokens and its D results
 * stays in the second-level cache, and nothing of it but the attended tokens goes to memory. The
 * backward pass computes the cheap rest again. Weight gradients add up in one accumulator per
 * part of the batch; parts are summed in order, so that the bits do not depend on the threads.
 *
 * Every matrix in scratch memory has rows of a multiple of LANES floats (its "pitch").
 */
#include "sparse_attention.c"
#include "lanes.c"

#define MAX_PARTS 16
#define NORM_EPSILON 1.1920929e-7f /* of torch's RMSNorm for float32 */
#define LAYER_EPSILON 1e-5f        /* of torch's layer_norm */

/* In the order of PARAMETERS in kernels/interaction.py. */
enum {
    NORM, QKV, GATE_W, GATE_B, OUT, TOKEN_WEIGHT, MIXED_WEIGHT, SKIP_WEIGHT,
    K_OFFSET, K_W1, K_B1, K_W2, K_B2, V_OFFSET, V_W1, V_B1, V_W2, V_B2,
    LN1_SCALE, LN1_SHIFT, E1_W, E1_B, E2_W, E2_B, F1_W, F1_B, F2_W, F2_B, LN2_SCALE, LN2_SHIFT,
    N_PARAMETERS
};

typedef struct {
    float *data, *gradient; /* dense; `gradient` is written by the backward pass */
    int64_t rows, columns;
} Parameter;

typedef struct {
    Problem attention; /* sizes and options; its tensors are set for each row */
    int64_t d_token, n_gates, compress_block, compress_stride;
    int64_t chunk; /* features that are mixed with each other; 0 without the mixer */
    int64_t n_pools; /* equal parts of every token whose means follow the results of a row; or 0 */
    int64_t narrow; /* whether narrow.c does it; saved tensors then have room for whole vectors */
    const float *tokens;          /* (row, feature, d_token) */
    float *attended;              /* (row, feature, d_token) or NULL */
    float *out;                   /* (row, feature), then (row, feature, pool) beside it */
    const float *d_out;           /* the same */
    float *d_tokens;              /* (row, feature, d_token) */
    Parameter parameter[N_PARAMETERS];
} Interaction;

/* Numbers of a row of `out`. */
INLINE int64_t row_width(const Interaction *p) {
    return p->attention.n_features * (1 + p->n_pools);
}

INLINE int64_t pitch_of(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

/* ---- elementwise ---- */

INLINE vec abs_vec(vec x) { return (vec)((ivec)x & 0x7fffffff); }

INLINE vec sigmoid_vec(vec x) {
    vec e = exp2_vec(abs_vec(x) * -1.44269504f);
    vec small = e / (1.0f + e);
    return choose((ivec)(x < 0.0f), small, 1.0f - small);
}

/* The normal distribution at x, and its density: error 1e-7 (Abramowitz and Stegun 7.1.26). */
INLINE vec normal_vec(vec x, vec *density) {
    vec size = abs_vec(x), t = 1.0f / (1.0f + 0.2316418882f * size);
    vec e = exp2_vec(x * x * -0.72134752f);
    vec p = 1.061405429f * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    vec tail = 0.5f * p * t * e;
    *density = 0.39894228f * e;
    return choose((ivec)(x < 0.0f), tail, 1.0f - tail);
}

INLINE vec gelu_vec(vec x) {
    vec density;
    return x * normal_vec(x, &density);
}

INLINE vec gelu_slope(vec x) {
    vec density, area = normal_vec(x, &density);
    return area + x * density;
}

INLINE vec relu_vec(vec x) { return max_vec((vec){0}, x); }

static void add_to(float *to, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) store(to + i, load(to + i) + load(x + i));
}

/* ---- matrix products: c (m, n) = or += a (m, k) b (k, n) ----
 * Element (i, j) of `a` is a[i * row + j * column]; n is a pitch. */

typedef struct {
    const float *data;
    int64_t row, column;
} Left;

INLINE void product_tile(Left a, const float *b, int64_t b_pitch, float *c, int64_t c_pitch,
                         int64_t k, int add, const int m, const int n_vecs) {
    vec sum[6][2] = {{{0}}};
    if (add)
        for (int i = 0; i < m; i++)
            for (int u = 0; u < n_vecs; u++) sum[i][u] = load(c + i * c_pitch + u * LANES);
    for (int64_t j = 0; j < k; j++) {
        const float *x = a.data + j * a.column;
        vec row[2];
        for (int u = 0; u < n_vecs; u++) row[u] = load(b + j * b_pitch + u * LANES);
        for (int i = 0; i < m; i++)
            for (int u = 0; u < n_vecs; u++) sum[i][u] += x[i * a.row] * row[u];
    }
    for (int i = 0; i < m; i++)
        for (int u = 0; u < n_vecs; u++) store(c + i * c_pitch + u * LANES, sum[i][u]);
}

INLINE void product_panel(Left a, const float *b, int64_t b_pitch, float *c, int64_t c_pitch,
                          int64_t m, int64_t k, int add, const int n_vecs) {
    int64_t i = 0;
    for (; i + 6 <= m; i += 6, a.data += 6 * a.row)
        product_tile(a, b, b_pitch, c + i * c_pitch, c_pitch, k, add, 6, n_vecs);
    for (; i + 2 <= m; i += 2, a.data += 2 * a.row)
        product_tile(a, b, b_pitch, c + i * c_pitch, c_pitch, k, add, 2, n_vecs);
    if (i < m) product_tile(a, b, b_pitch, c + i * c_pitch, c_pitch, k, add, 1, n_vecs);
}

static void product(Left a, const float *b, int64_t b_pitch, float *c, int64_t c_pitch, int64_t m,
                    int64_t n, int64_t k, int add) {
    const int64_t block = 48; /* rows of `a` that stay in the first-level cache */
    for (int64_t i = 0; i < m; i += block) {
        int64_t rows = m - i < block ? m - i : block;
        Left part = {a.data + i * a.row, a.row, a.column};
        int64_t j = 0;
        for (; j + TILE <= n; j += TILE)
            product_panel(part, b + j, b_pitch, c + i * c_pitch + j, c_pitch, rows, k, add, 2);
        if (j < n)
            product_panel(part, b + j, b_pitch, c + i * c_pitch + j, c_pitch, rows, k, add, 1);
    }
}

/* ---- weights, packed once per call ---- */

typedef struct {
    float *straight, *turned; /* (rows, pitch of columns) and (columns, pitch of rows) */
    int64_t rows, columns, pitch, turned_pitch;
} Matrix;

/* y = x w^T, with x of `n` rows. */
INLINE void apply(const Matrix *w, const float *x, int64_t x_pitch, int64_t n, float *y) {
    product((Left){x, x_pitch, 1}, w->turned, w->turned_pitch, y, w->turned_pitch, n,
            w->turned_pitch, w->columns, 0);
}

/* dx = or += dy w. */
INLINE void apply_back(const Matrix *w, const float *dy, int64_t dy_pitch, int64_t n, float *dx,
                       int64_t dx_pitch, int add) {
    product((Left){dy, dy_pitch, 1}, w->straight, w->pitch, dx, dx_pitch, n, w->pitch, w->rows,
            add);
}

/* dw += dy^T x. */
INLINE void weight_gradient(const Matrix *w, const float *dy, int64_t dy_pitch, const float *x,
                            int64_t x_pitch, int64_t n, float *dw) {
    product((Left){dy, 1, dy_pitch}, x, x_pitch, dw, w->pitch, w->rows, w->pitch, n, 1);
}

/* Sum of the rows of x, added to `total`. */
static void add_rows(const float *x, int64_t pitch, int64_t n, float *total) {
    for (int64_t j = 0; j < pitch; j += LANES) {
        vec sum = load(total + j);
        for (int64_t i = 0; i < n; i++) sum += load(x + i * pitch + j);
        store(total + j, sum);
    }
}

static void turn(const float *x, int64_t pitch, int64_t rows, int64_t columns, float *out,
                 int64_t out_pitch) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) out[j * out_pitch + i] = x[i * pitch + j];
}

/* ---- scratch memory of one thread ---- */

typedef struct {
    const Interaction *problem;
    const Matrix *weight;
    Pair pair;
    Problem attention;
    int64_t n_features, d_token, width; /* width: pitch of the compressor's blocks */
    int64_t gate_pitch, hidden_pitch, head_pitch, n_compressed;
    float *normed, *inverse, *qkv, *gates;
    float *blocks[2], *hidden[2], *compressed[2]; /* keys and values */
    float *attended, *d_attended, *d_qkv, *d_gates, *d_gate_rows, *d_compressed[2], *d_hidden;
    float *stats;
    int32_t *selected;
    /* of one chunk of features */
    float *u, *level, *e1, *e2, *f1, *f2, *rate1, *d_u, *d_level, *d_e, *d_f, *d_g, *turned;
    float *total[N_PARAMETERS]; /* gradients of this part of the batch */
} Row;

/* ---- forward ---- */

/* normed = tokens / root mean square * scale */
static void normalize(Row *row, const float *tokens) {
    int64_t d = row->d_token;
    const float *scale = row->weight[NORM].straight;
    for (int64_t i = 0; i < row->n_features; i++) {
        const float *x = tokens + i * d;
        vec sum = {0};
        for (int64_t j = 0; j < d; j += LANES) sum += load(x + j) * load(x + j);
        float inverse = 1.0f / __builtin_sqrtf(sum_lanes(sum) / (float)d + NORM_EPSILON);
        for (int64_t j = 0; j < d; j += LANES)
            store(row->normed + i * d + j, load(x + j) * inverse * load(scale + j));
        row->inverse[i] = inverse;
    }
}

INLINE void add_places(float *to, const float *x, const float *y, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(to + i, load(x + i) + load(y + i));
    for (; i < n; i++) to[i] = x[i] + y[i];
}

/* Cut the keys (part 0) or values (part 1) of a head into blocks, with the offsets of their places;
 * beyond the last feature the blocks hold zeros. */
static void cut_blocks(Row *row, int part, int64_t head) {
    const Interaction *p = row->problem;
    int64_t d_head = row->pair.d_head, pitch = 3 * row->d_token;
    const float *offset = row->weight[part ? V_OFFSET : K_OFFSET].straight;
    int64_t offset_pitch = row->weight[K_OFFSET].pitch;
    const float *x = row->qkv + (1 + part) * row->d_token + head * d_head;
    float *to = row->blocks[part] + head * row->n_compressed * row->width;
    for (int64_t c = 0; c < row->n_compressed; c++, to += row->width)
        for (int64_t i = 0; i < p->compress_block; i++) {
            int64_t feature = c * p->compress_stride + i;
            float *place = to + i * d_head;
            if (feature >= row->n_features) {
                memset(place, 0, sizeof(float) * d_head);
                continue;
            }
            add_places(place, x + feature * pitch, offset + i * offset_pitch, d_head);
        }
}

/* Keys and values of blocks: a layer with GELU over each block of a head, then a linear one. */
static void compress(Row *row) {
    int64_t n = row->attention.n_heads * row->n_compressed;
    for (int part = 0; part < 2; part++) {
        int first = part ? V_OFFSET : K_OFFSET;
        const float *b1 = row->weight[first + 2].straight, *b2 = row->weight[first + 4].straight;
        float *hidden = row->hidden[part], *active = row->d_hidden;
        for (int64_t head = 0; head < row->attention.n_heads; head++) cut_blocks(row, part, head);
        apply(&row->weight[first + 1], row->blocks[part], row->width, n, hidden);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < row->hidden_pitch; j += LANES) {
                int64_t at = i * row->hidden_pitch + j;
                vec x = load(hidden + at) + load(b1 + j);
                store(hidden + at, x);
                store(active + at, gelu_vec(x));
            }
        apply(&row->weight[first + 3], active, row->hidden_pitch, n, row->compressed[part]);
        for (int64_t i = 0; i < n; i++) add_to(row->compressed[part] + i * row->head_pitch, b2,
                                               row->head_pitch);
    }
}

static void project(Row *row, const float *tokens) {
    int64_t n = row->n_features;
    normalize(row, tokens);
    apply(&row->weight[QKV], row->normed, row->d_token, n, row->qkv);
    apply(&row->weight[GATE_W], row->qkv, 3 * row->d_token, n, row->gates);
    const float *bias = row->weight[GATE_B].straight;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < row->gate_pitch; j += LANES) {
            float *gate = row->gates + i * row->gate_pitch + j;
            store(gate, sigmoid_vec(load(gate) + load(bias + j)));
        }
    compress(row);
}

static void attend(Row *row, int backward) {
    for (int64_t head = 0; head < row->attention.n_heads; head++)
        run_pair(&row->attention, &row->pair, head, backward);
}

/* u = token_weight * tokens + attended out^T for some features. */
static void blend(Row *row, const float *tokens, int64_t from, int64_t n) {
    int64_t d = row->d_token;
    float weight = row->weight[TOKEN_WEIGHT].straight[0];
    apply(&row->weight[OUT], row->attended + from * d, d, n, row->u);
    for (int64_t i = 0; i < n * d; i += LANES)
        store(row->u + i, load(row->u + i) + weight * load(tokens + from * d + i));
}

/* Centre and scale one row of d floats; returns the inverse deviation. */
INLINE float standardize(const float *x, int64_t d, float *out) {
    vec sum = {0}, squares = {0};
    for (int64_t j = 0; j < d; j += LANES) sum += load(x + j);
    float mean = sum_lanes(sum) / (float)d;
    for (int64_t j = 0; j < d; j += LANES) {
        vec centred = load(x + j) - mean;
        squares += centred * centred;
        store(out + j, centred);
    }
    float rate = 1.0f / __builtin_sqrtf(sum_lanes(squares) / (float)d + LAYER_EPSILON);
    for (int64_t j = 0; j < d; j += LANES) store(out + j, load(out + j) * rate);
    return rate;
}

INLINE void bias_relu(float *x, const float *bias, int64_t d, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j += LANES)
            store(x + i * d + j, relu_vec(load(x + i * d + j) + load(bias + j)));
}

/* Both branches of the mixer for a chunk of n features whose blended tokens are in `u`:
 * e2 before its GELU, f2, and what leads to them. */
static void mix_chunk(Row *row, int64_t n) {
    int64_t d = row->d_token, chunk = row->problem->chunk;
    const Matrix *w = row->weight;
    const float *scale = w[LN1_SCALE].straight, *shift = w[LN1_SHIFT].straight;
    for (int64_t i = 0; i < n; i++) {
        float *x = row->level + i * d;
        row->rate1[i] = standardize(row->u + i * d, d, x);
        for (int64_t j = 0; j < d; j += LANES)
            store(x + j, load(x + j) * load(scale + j) + load(shift + j));
    }
    memset(row->level + n * d, 0, sizeof(float) * (chunk - n) * d);

    apply(&w[E1_W], row->level, d, n, row->e1);
    bias_relu(row->e1, w[E1_B].straight, d, n);
    apply(&w[E2_W], row->e1, d, n, row->e2);
    for (int64_t i = 0; i < n; i++) add_to(row->e2 + i * d, w[E2_B].straight, d);

    /* The bias of a feature is the start of its sums. */
    for (int64_t i = 0; i < chunk; i++)
        for (int64_t j = 0; j < d; j += LANES)
            store(row->f1 + i * d + j, splat(w[F1_B].straight[i]));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j += LANES)
            store(row->f2 + i * d + j, splat(w[F2_B].straight[i]));
    product((Left){w[F1_W].straight, w[F1_W].pitch, 1}, row->level, d, row->f1, d, chunk, d, n, 1);
    for (int64_t i = 0; i < chunk * d; i += LANES) store(row->f1 + i, relu_vec(load(row->f1 + i)));
    product((Left){w[F2_W].straight, w[F2_W].pitch, 1}, row->f1, d, row->f2, d, n, d, chunk, 1);
}

INLINE float sum_row(const float *x, int64_t d) {
    vec sum = {0};
    for (int64_t j = 0; j < d; j += LANES) sum += load(x + j);
    return sum_lanes(sum);
}

/* Sum over the token axis of SiLU(LayerNorm(GELU(e2) * f2)) for one feature. */
INLINE float fuse(Row *row, int64_t i) {
    int64_t d = row->d_token;
    const float *scale = row->weight[LN2_SCALE].straight, *shift = row->weight[LN2_SHIFT].straight;
    float *x = row->e1 + i * d; /* e1 is not needed any more */
    for (int64_t j = 0; j < d; j += LANES)
        store(x + j, gelu_vec(load(row->e2 + i * d + j)) * load(row->f2 + i * d + j));
    standardize(x, d, x);
    vec sum = {0};
    for (int64_t j = 0; j < d; j += LANES) {
        vec h = load(x + j) * load(scale + j) + load(shift + j);
        sum += h * sigmoid_vec(h);
    }
    return sum_lanes(sum);
}

INLINE int64_t chunk_of(const Row *row) {
    return row->problem->chunk ? row->problem->chunk : row->n_features;
}

/* Means of equal parts of the tokens of one row. */
static void pool_tokens(const Interaction *p, const float *tokens, float *out) {
    if (!p->n_pools) return;
    int64_t size = p->d_token / p->n_pools, n = p->attention.n_features * p->n_pools;
    for (int64_t i = 0; i < n; i++, tokens += size) {
        float sum = 0.0f;
        for (int64_t j = 0; j < size; j++) sum += tokens[j];
        out[i] = sum / (float)size;
    }
}

static void pool_tokens_back(const Interaction *p, const float *d_out, float *d_tokens) {
    if (!p->n_pools) return;
    int64_t size = p->d_token / p->n_pools, n = p->attention.n_features * p->n_pools;
    for (int64_t i = 0; i < n; i++, d_tokens += size) {
        float slope = d_out[i] / (float)size;
        for (int64_t j = 0; j < size; j++) d_tokens[j] += slope;
    }
}

static void forward_row(Row *row, int64_t index) {
    const Interaction *p = row->problem;
    int64_t d = row->d_token, n_features = row->n_features;
    const float *tokens = p->tokens + index * n_features * d;
    float *out = p->out + index * row_width(p), part = 1.0f / (float)d;
    float mixed = row->weight[MIXED_WEIGHT].straight[0], skip = row->weight[SKIP_WEIGHT].straight[0];
    project(row, tokens);
    attend(row, 0);
    for (int64_t from = 0; from < n_features; from += chunk_of(row)) {
        int64_t left = n_features - from, n = left < chunk_of(row) ? left : chunk_of(row);
        blend(row, tokens, from, n);
        if (p->chunk) mix_chunk(row, n);
        for (int64_t i = 0; i < n; i++) {
            float sum = (1.0f + mixed) * sum_row(row->u + i * d, d) +
                        skip * sum_row(tokens + (from + i) * d, d);
            if (p->chunk) sum += fuse(row, i);
            out[from + i] = sum * part;
        }
    }
    pool_tokens(p, tokens, out + n_features);
}

/* ---- backward ---- */

/* dx of a standardisation: xhat = (x - mean) * rate, from d_xhat; overwrites d_xhat. */
INLINE void standardize_back(const float *xhat, float rate, int64_t d, float *d_xhat) {
    vec sum = {0}, dot = {0};
    for (int64_t j = 0; j < d; j += LANES) {
        sum += load(d_xhat + j);
        dot += load(d_xhat + j) * load(xhat + j);
    }
    float mean = sum_lanes(sum) / (float)d, slope = sum_lanes(dot) / (float)d;
    for (int64_t j = 0; j < d; j += LANES)
        store(d_xhat + j, (load(d_xhat + j) - mean - load(xhat + j) * slope) * rate);
}

/* Gradients of e2 (before GELU, in d_e) and f2 (in d_f) of one feature, from that of its mean. */
INLINE void fuse_back(Row *row, int64_t i, float d_mean) {
    int64_t d = row->d_token;
    const Matrix *w = row->weight;
    const float *e2 = row->e2 + i * d, *f2 = row->f2 + i * d;
    float *d_e = row->d_e + i * d, *d_f = row->d_f + i * d;
    float *xhat = row->turned, *active = xhat + d, *d_x = active + d;
    for (int64_t j = 0; j < d; j += LANES) {
        store(active + j, gelu_vec(load(e2 + j)));
        store(xhat + j, load(active + j) * load(f2 + j));
    }
    float rate = standardize(xhat, d, xhat);
    for (int64_t j = 0; j < d; j += LANES) {
        vec scale = load(w[LN2_SCALE].straight + j);
        vec h = load(xhat + j) * scale + load(w[LN2_SHIFT].straight + j), s = sigmoid_vec(h);
        vec d_h = d_mean * s * (1.0f + h * (1.0f - s));
        float *total = row->total[LN2_SCALE] + j, *shift = row->total[LN2_SHIFT] + j;
        store(total, load(total) + d_h * load(xhat + j));
        store(shift, load(shift) + d_h);
        store(d_x + j, d_h * scale);
    }
    standardize_back(xhat, rate, d, d_x);
    for (int64_t j = 0; j < d; j += LANES) {
        store(d_e + j, load(d_x + j) * load(f2 + j) * gelu_slope(load(e2 + j)));
        store(d_f + j, load(d_x + j) * load(active + j));
    }
}

INLINE void relu_back(const float *x, int64_t n, float *dx) {
    for (int64_t i = 0; i < n; i += LANES)
        store(dx + i, choose((ivec)(load(x + i) > 0.0f), load(dx + i), (vec){0}));
}

/* From d_e and d_f of a chunk to d_u, through both branches and the layer norm. */
static void mix_chunk_back(Row *row, int64_t n) {
    int64_t d = row->d_token, chunk = row->problem->chunk, pitch = row->weight[F1_W].pitch;
    const Matrix *w = row->weight;
    float **total = row->total;

    add_rows(row->d_e, d, n, total[E2_B]);
    weight_gradient(&w[E2_W], row->d_e, d, row->e1, d, n, total[E2_W]);
    apply_back(&w[E2_W], row->d_e, d, n, row->d_g, d, 0);
    relu_back(row->e1, n * d, row->d_g);
    add_rows(row->d_g, d, n, total[E1_B]);
    weight_gradient(&w[E1_W], row->d_g, d, row->level, d, n, total[E1_W]);
    memset(row->d_level + n * d, 0, sizeof(float) * (chunk - n) * d);
    apply_back(&w[E1_W], row->d_g, d, n, row->d_level, d, 0);

    for (int64_t i = 0; i < n; i++) total[F2_B][i] += sum_row(row->d_f + i * d, d);
    turn(row->f1, d, chunk, d, row->turned, pitch);
    product((Left){row->d_f, d, 1}, row->turned, pitch, total[F2_W], pitch, n, pitch, d, 1);
    product((Left){w[F2_W].straight, 1, w[F2_W].pitch}, row->d_f, d, row->d_g, d, chunk, d, n, 0);
    relu_back(row->f1, chunk * d, row->d_g);
    for (int64_t i = 0; i < chunk; i++) total[F1_B][i] += sum_row(row->d_g + i * d, d);
    turn(row->level, d, chunk, d, row->turned, pitch);
    product((Left){row->d_g, d, 1}, row->turned, pitch, total[F1_W], pitch, chunk, pitch, d, 1);
    product((Left){w[F1_W].straight, 1, w[F1_W].pitch}, row->d_g, d, row->d_level, d, n, d, chunk,
            1);

    const float *scale = w[LN1_SCALE].straight;
    for (int64_t i = 0; i < n; i++) {
        float *xhat = row->level + i * d, *dx = row->d_level + i * d;
        standardize(row->u + i * d, d, xhat);
        for (int64_t j = 0; j < d; j += LANES) {
            float *scales = total[LN1_SCALE] + j, *shifts = total[LN1_SHIFT] + j;
            store(scales, load(scales) + load(dx + j) * load(xhat + j));
            store(shifts, load(shifts) + load(dx + j));
            store(dx + j, load(dx + j) * load(scale + j));
        }
        standardize_back(xhat, row->rate1[i], d, dx);
    }
}

/* From the results' gradients to those of the attended tokens, and the direct part of the tokens'. */
static void blend_back(Row *row, const float *tokens, const float *d_out, float *d_tokens,
                       int64_t from, int64_t n) {
    const Interaction *p = row->problem;
    int64_t d = row->d_token;
    const Matrix *w = row->weight;
    float mixed = w[MIXED_WEIGHT].straight[0], skip = w[SKIP_WEIGHT].straight[0];
    float weight = w[TOKEN_WEIGHT].straight[0], part = 1.0f / (float)d;
    blend(row, tokens, from, n);
    if (p->chunk) {
        mix_chunk(row, n);
        for (int64_t i = 0; i < n; i++) fuse_back(row, i, d_out[from + i] * part);
        mix_chunk_back(row, n);
    }
    float d_mixed = 0.0f, d_skip = 0.0f;
    vec d_weight = {0};
    for (int64_t i = 0; i < n; i++) {
        const float *u = row->u + i * d, *x = tokens + (from + i) * d;
        float *d_u = row->d_u + i * d, *d_x = d_tokens + (from + i) * d;
        float d_mean = d_out[from + i] * part;
        d_mixed += d_mean * sum_row(u, d);
        d_skip += d_mean * sum_row(x, d);
        for (int64_t j = 0; j < d; j += LANES) {
            vec g = splat(d_mean * (1.0f + mixed));
            if (p->chunk) g += load(row->d_level + i * d + j);
            store(d_u + j, g);
            d_weight += g * load(x + j);
            store(d_x + j, weight * g + skip * d_mean);
        }
    }
    row->total[MIXED_WEIGHT][0] += d_mixed;
    row->total[SKIP_WEIGHT][0] += d_skip;
    row->total[TOKEN_WEIGHT][0] += sum_lanes(d_weight);
    weight_gradient(&w[OUT], row->d_u, d, row->attended + from * d, d, n, row->total[OUT]);
    apply_back(&w[OUT], row->d_u, d, n, row->d_attended + from * d, d, 0);
}

/* Gradients of the compressors, and of the keys and values through them. */
static void compress_back(Row *row) {
    const Interaction *p = row->problem;
    int64_t n = row->attention.n_heads * row->n_compressed, d_head = row->pair.d_head;
    int64_t pitch = 3 * row->d_token, offset_pitch = row->weight[K_OFFSET].pitch;
    for (int part = 0; part < 2; part++) {
        int first = part ? V_OFFSET : K_OFFSET;
        const Matrix *w1 = &row->weight[first + 1], *w2 = &row->weight[first + 3];
        float *hidden = row->hidden[part], *d_hidden = row->d_hidden, **total = row->total;
        const float *dy = row->d_compressed[part];
        add_rows(dy, row->head_pitch, n, total[first + 4]);
        apply_back(w2, dy, row->head_pitch, n, d_hidden, row->hidden_pitch, 0);
        for (int64_t i = 0; i < n * row->hidden_pitch; i += LANES) {
            vec x = load(hidden + i);
            store(d_hidden + i, load(d_hidden + i) * gelu_slope(x));
            store(hidden + i, gelu_vec(x));
        }
        weight_gradient(w2, dy, row->head_pitch, hidden, row->hidden_pitch, n, total[first + 3]);
        add_rows(d_hidden, row->hidden_pitch, n, total[first + 2]);
        weight_gradient(w1, d_hidden, row->hidden_pitch, row->blocks[part], row->width, n,
                        total[first + 1]);
        /* The blocks' own gradients take their place. */
        apply_back(w1, d_hidden, row->hidden_pitch, n, row->blocks[part], row->width, 0);
        for (int64_t head = 0; head < row->attention.n_heads; head++) {
            float *to = row->d_qkv + (1 + part) * row->d_token + head * d_head;
            const float *from = row->blocks[part] + head * row->n_compressed * row->width;
            for (int64_t c = 0; c < row->n_compressed; c++, from += row->width)
                for (int64_t i = 0; i < p->compress_block; i++) {
                    int64_t feature = c * p->compress_stride + i;
                    if (feature >= row->n_features) break;
                    const float *dx = from + i * d_head;
                    float *place = total[first] + i * offset_pitch;
                    add_places(to + feature * pitch, to + feature * pitch, dx, d_head);
                    add_places(place, place, dx, d_head);
                }
        }
    }
}

/* Gradients of the gates reach the queries, those of queries, keys and values the tokens. */
static void project_back(Row *row, const float *tokens, float *d_tokens) {
    int64_t n = row->n_features, d = row->d_token, n_heads = row->attention.n_heads;
    const Matrix *w = row->weight;
    for (int64_t i = 0; i < n; i++) {
        const float *gate = row->gates + i * row->gate_pitch;
        float *d_gate = row->d_gate_rows + i * row->gate_pitch;
        memset(d_gate, 0, sizeof(float) * row->gate_pitch);
        for (int64_t head = 0; head < n_heads; head++)
            for (int branch = 0; branch < 3; branch++)
                d_gate[head % row->problem->n_gates * 3 + branch] +=
                    row->d_gates[(head * n + i) * 3 + branch];
        for (int64_t j = 0; j < row->gate_pitch; j += LANES)
            store(d_gate + j,
                  load(d_gate + j) * load(gate + j) * (1.0f - load(gate + j)));
    }
    add_rows(row->d_gate_rows, row->gate_pitch, n, row->total[GATE_B]);
    weight_gradient(&w[GATE_W], row->d_gate_rows, row->gate_pitch, row->qkv, 3 * d, n,
                    row->total[GATE_W]);
    apply_back(&w[GATE_W], row->d_gate_rows, row->gate_pitch, n, row->d_qkv, 3 * d, 1);

    weight_gradient(&w[QKV], row->d_qkv, 3 * d, row->normed, d, n, row->total[QKV]);
    float *d_normed = row->d_attended; /* its room is free by now */
    apply_back(&w[QKV], row->d_qkv, 3 * d, n, d_normed, d, 0);
    for (int64_t i = 0; i < n; i++) {
        const float *x = tokens + i * d, *dy = d_normed + i * d;
        float inverse = row->inverse[i];
        vec dot = {0};
        for (int64_t j = 0; j < d; j += LANES) {
            vec xhat = load(x + j) * inverse;
            float *total = row->total[NORM] + j;
            store(total, load(total) + load(dy + j) * xhat);
            dot += load(dy + j) * load(w[NORM].straight + j) * xhat;
        }
        float slope = sum_lanes(dot) / (float)d * inverse;
        for (int64_t j = 0; j < d; j += LANES) {
            vec xhat = load(x + j) * inverse;
            float *to = d_tokens + i * d + j;
            store(to, load(to) + load(dy + j) * load(w[NORM].straight + j) * inverse -
                          xhat * slope);
        }
    }
}

static void backward_row(Row *row, int64_t index) {
    const Interaction *p = row->problem;
    int64_t d = row->d_token, n_features = row->n_features;
    const float *tokens = p->tokens + index * n_features * d;
    const float *d_out = p->d_out + index * row_width(p);
    float *d_tokens = p->d_tokens + index * n_features * d;
    project(row, tokens);
    for (int64_t from = 0; from < n_features; from += chunk_of(row)) {
        int64_t left = n_features - from, n = left < chunk_of(row) ? left : chunk_of(row);
        blend_back(row, tokens, d_out, d_tokens, from, n);
    }
    attend(row, 1);
    compress_back(row);
    project_back(row, tokens, d_tokens);
    pool_tokens_back(p, d_out + n_features, d_tokens);
}

/* ---- memory, threads, parts of the batch ---- */

typedef struct {
    const Interaction *problem;
    const Matrix *weight;
    float **total; /* [part][parameter] */
    int64_t n_parts, next, failed;
    int backward;
} Batch;

#include "lane_attention.c"
#include "narrow.c"

static Tensor strided(float *data, int64_t head, int64_t feature) {
    return (Tensor){data, {0, head, feature, 1}};
}

static size_t lay_out_row(const Batch *batch, Row *row, char *base) {
    const Interaction *p = batch->problem;
    int64_t n = p->attention.n_features, d = p->d_token, d_head = p->attention.d_head;
    int64_t n_heads = p->attention.n_heads, n_cmp = p->attention.n_compressed;
    int64_t chunk = p->chunk ? p->chunk : n;
    size_t used = 0;
    row->problem = p;
    row->weight = batch->weight;
    row->n_features = n;
    row->d_token = d;
    row->n_compressed = n_cmp;
    row->width = pitch_of(p->compress_block * d_head);
    row->gate_pitch = pitch_of(3 * p->n_gates);
    row->hidden_pitch = pitch_of(p->parameter[K_W1].rows);
    row->head_pitch = pitch_of(d_head);
    row->normed = take(base, &used, n * d);
    row->inverse = take(base, &used, n);
    row->qkv = take(base, &used, n * 3 * d);
    row->gates = take(base, &used, n * row->gate_pitch);
    row->d_hidden = take(base, &used, n_heads * n_cmp * row->hidden_pitch);
    for (int i = 0; i < 2; i++) {
        row->blocks[i] = take(base, &used, n_heads * n_cmp * row->width);
        row->hidden[i] = take(base, &used, n_heads * n_cmp * row->hidden_pitch);
        row->compressed[i] = take(base, &used, n_heads * n_cmp * row->head_pitch);
    }
    row->u = take(base, &used, chunk * d);
    row->level = take(base, &used, chunk * d);
    row->e1 = take(base, &used, chunk * d);
    row->e2 = take(base, &used, chunk * d);
    row->f1 = take(base, &used, chunk * d);
    row->f2 = take(base, &used, chunk * d);
    row->rate1 = take(base, &used, chunk);
    row->attended = p->attended ? NULL : take(base, &used, n * d);
    row->stats = p->attention.stats ? NULL : take(base, &used, n_heads * 6 * n);
    row->selected = p->attention.selected
                        ? NULL
                        : take(base, &used, n_heads * n * p->attention.n_selected);
    if (batch->backward) {
        row->d_attended = take(base, &used, n * d);
        row->d_qkv = take(base, &used, n * 3 * d);
        row->d_gates = take(base, &used, n_heads * n * 3);
        row->d_gate_rows = take(base, &used, n * row->gate_pitch);
        for (int i = 0; i < 2; i++)
            row->d_compressed[i] = take(base, &used, n_heads * n_cmp * row->head_pitch);
        row->d_u = take(base, &used, chunk * d);
        row->d_level = take(base, &used, chunk * d);
        row->d_e = take(base, &used, chunk * d);
        row->d_f = take(base, &used, chunk * d);
        row->d_g = take(base, &used, chunk * d);
        row->turned = take(base, &used, d * pitch_of(chunk) > 3 * d ? d * pitch_of(chunk) : 3 * d);
    }
    size_t inner = lay_out(&p->attention, &row->pair, base ? base + used : NULL);
    return used + inner;
}

/* Point the attention's tensors at the row's scratch memory. */
static void aim(Row *row) {
    const Interaction *p = row->problem;
    Problem *a = &row->attention;
    int64_t d = row->d_token, d_head = p->attention.d_head, n_cmp = row->n_compressed;
    int64_t head_gate = p->n_gates > 1 ? 3 : 0, n = row->n_features;
    *a = p->attention;
    a->q = strided(row->qkv, d_head, 3 * d);
    a->k = strided(row->qkv + d, d_head, 3 * d);
    a->v = strided(row->qkv + 2 * d, d_head, 3 * d);
    a->k_cmp = strided(row->compressed[0], n_cmp * row->head_pitch, row->head_pitch);
    a->v_cmp = strided(row->compressed[1], n_cmp * row->head_pitch, row->head_pitch);
    a->gates = strided(row->gates, head_gate, row->gate_pitch);
    a->d_out = strided(row->d_attended, d_head, d);
    a->dq = strided(row->d_qkv, d_head, 3 * d);
    a->dk = strided(row->d_qkv + d, d_head, 3 * d);
    a->dv = strided(row->d_qkv + 2 * d, d_head, 3 * d);
    a->dk_cmp = strided(row->d_compressed[0], n_cmp * row->head_pitch, row->head_pitch);
    a->dv_cmp = strided(row->d_compressed[1], n_cmp * row->head_pitch, row->head_pitch);
    a->d_gates = strided(row->d_gates, n * 3, 3);
    if (row->stats) a->stats = row->stats;
    if (row->selected) a->selected = row->selected;
}

static void run_row(Row *row, int64_t index, int backward) {
    const Interaction *p = row->problem;
    int64_t n = row->n_features, d = row->d_token, n_heads = p->attention.n_heads;
    if (p->attended) row->attended = p->attended + index * n * d;
    if (p->attention.stats) row->attention.stats = p->attention.stats + index * n_heads * 6 * n;
    if (p->attention.selected)
        row->attention.selected =
            p->attention.selected + index * n_heads * n * p->attention.n_selected;
    row->attention.out = strided(row->attended, p->attention.d_head, d);
    if (backward)
        backward_row(row, index);
    else
        forward_row(row, index);
}

static void work_rows(void *argument) {
    Batch *batch = argument;
    Row row;
    memset(&row, 0, sizeof row);
    size_t size = lay_out_row(batch, &row, NULL);
    char *memory = borrow(size);
    if (!memory) return; /* the other threads take over */
    memset(memory, 0, size); /* padding must be zeros, and finite */
    lay_out_row(batch, &row, memory);
    aim(&row);
    int64_t n_rows = batch->problem->attention.n_rows;
    for (;;) {
        int64_t part = __atomic_fetch_add(&batch->next, 1, __ATOMIC_RELAXED);
        if (part >= batch->n_parts) break;
        if (batch->backward)
            memcpy(row.total, batch->total + part * N_PARAMETERS, sizeof row.total);
        int64_t last = (part + 1) * n_rows / batch->n_parts;
        for (int64_t i = part * n_rows / batch->n_parts; i < last; i++)
            run_row(&row, i, batch->backward);
    }
    give_back(memory);
}

static void work_batch(void *argument) {
    const Batch *batch = argument;
    if (batch->problem->narrow)
        work_bundles(argument);
    else
        work_rows(argument);
}

/* Copies of the weights in both directions; with base NULL only counts. */
static size_t pack_weights(const Interaction *problem, Matrix *weight, char *base) {
    size_t used = 0;
    for (int i = 0; i < N_PARAMETERS; i++) {
        const Parameter *p = &problem->parameter[i];
        Matrix *w = &weight[i];
        w->rows = p->rows;
        w->columns = p->columns;
        w->pitch = problem->narrow ? p->columns : pitch_of(p->columns);
        w->turned_pitch = pitch_of(p->rows);
        if (problem->narrow) continue; /* which takes the weights as they are */
        w->straight = take(base, &used, p->rows * w->pitch);
        w->turned = take(base, &used, p->columns * w->turned_pitch);
        if (!base || !p->data) continue;
        turn(p->data, p->columns, p->rows, p->columns, w->turned, w->turned_pitch);
        for (int64_t j = 0; j < p->rows; j++)
            memcpy(w->straight + j * w->pitch, p->data + j * p->columns,
                   sizeof(float) * p->columns);
    }
    return used;
}

static size_t lay_out_totals(const Matrix *weight, int64_t n_parts, float **total, char *base) {
    size_t used = 0;
    for (int64_t part = 0; part < n_parts; part++)
        for (int i = 0; i < N_PARAMETERS; i++)
            total[part * N_PARAMETERS + i] = take(base, &used, weight[i].rows * weight[i].pitch);
    return used;
}

static void write_gradients(const Interaction *problem, const Matrix *weight, float **total,
                            int64_t n_parts) {
    for (int i = 0; i < N_PARAMETERS; i++) {
        const Parameter *p = &problem->parameter[i];
        if (!p->data) continue;
        for (int64_t part = 1; part < n_parts; part++)
            add_to(total[i], total[part * N_PARAMETERS + i], weight[i].rows * weight[i].pitch);
        for (int64_t j = 0; j < p->rows; j++)
            memcpy(p->gradient + j * p->columns, total[i] + j * weight[i].pitch,
                   sizeof(float) * p->columns);
    }
}

/* Returns 0 on success, 1 when memory ran out. */
__attribute__((visibility("default"))) int tabnsm_interaction(const Interaction *problem,
                                                              int backward) {
    Matrix weight[N_PARAMETERS];
    float *total[MAX_PARTS * N_PARAMETERS];
    int64_t n_rows = problem->attention.n_rows;
    Batch batch = {problem, weight, total, n_rows, 0, 0, backward};
    if (problem->narrow) {
        int64_t step = groups_per_bundle(problem) * LANES;
        batch.n_parts = (n_rows + step - 1) / step;
    }
    if (backward && batch.n_parts > MAX_PARTS) batch.n_parts = MAX_PARTS;
    if (backward && !batch.n_parts) batch.n_parts = 1; /* no rows: gradients are zeros */
    size_t packed = pack_weights(problem, weight, NULL);
    size_t size = packed + (backward ? lay_out_totals(weight, batch.n_parts, total, NULL) : 0);
    char *memory = borrow(size);
    if (!memory) return 1;
    memset(memory, 0, size);
    pack_weights(problem, weight, memory);
    if (backward) lay_out_totals(weight, batch.n_parts, total, memory + packed);
    run_threads(work_batch, &batch, problem->attention.n_threads, problem->attention.parallel);
    int failed = batch.next < batch.n_parts;
    if (backward && !failed) write_gradients(problem, weight, total, batch.n_parts);
    give_back(memory);
    return failed;
}

/* Rows that go together in narrow tables: saved tensors have room for a multiple of these. */
__attribute__((visibility("default"))) int tabnsm_lanes(void) { return LANES; }

#include "head.c"
