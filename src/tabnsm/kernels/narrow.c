/* The interaction module for tables that are not wide: LANES rows in the lanes of vectors.
 *
 * One row of a narrow table is too little for a matrix product: eight features are eight rows of a
 * matrix, and loops over them end before they are fast. Here a bundle of row groups, LANES rows
 * each, goes through all steps together; see lanes.c for the layout. Included by interaction.c, whose
 * formulas these are; the other path serves wide tables, where LANES rows would leave the cache and
 * where rows select few of many blocks.
 */

#define BUNDLE_COLUMNS 32 /* tokens of LANES rows in a bundle, at least, where rows suffice */

typedef struct {
    const Interaction *problem;
    int64_t n_features, d, d_head, n_heads, n_gates, n_blocks, n_hidden;
    /* Floats between columns; odd numbers of vectors, so that columns spread over the cache. */
    int64_t step, qkv_step, block_step, hidden_step;
    int64_t n_groups, n; /* groups of LANES rows in this bundle, and columns: tokens of groups */
    float *x, *normed, *inverse, *qkv, *gates;
    float *blocks[2], *hidden[2], *compressed[2], *active; /* keys, values; [block][group][head] */
    float *attended;
    float *stats; /* [group][head][query], or NULL */
    int32_t *selected;
    Heads heads;
    float *u, *level, *rate, *e1, *e2, *f1, *f2;
    float *d_attended, *d_x, *d_qkv, *d_gates, *d_compressed[2];
    float *d_u, *d_level, *d_e, *d_f, *d_g, *scratch;
    float *total[N_PARAMETERS];
} Bundle;

INLINE const float *vector_of(const Bundle *b, int parameter) {
    return b->problem->parameter[parameter].data;
}

INLINE Weights matrix_of(const Bundle *b, int parameter) {
    const Parameter *p = &b->problem->parameter[parameter];
    return (Weights){p->data, p->columns, 1};
}

/* Numbers one after another, columns `step` floats apart. */
INLINE Grid columns_of(float *data, int64_t step) { return (Grid){data, LANES, step}; }

/* The same with features in place of numbers, and numbers in place of columns. */
INLINE Grid features_of(float *data, int64_t step) { return (Grid){data, step, LANES}; }

/* ---- forward ---- */

static void load_tokens(Bundle *b, int64_t first_row) {
    const Interaction *p = b->problem;
    int64_t d = b->d, pitch = b->n_features * d;
    for (int64_t g = 0; g < b->n_groups; g++) {
        int64_t row = first_row + g * LANES, n = least(LANES, p->attention.n_rows - row);
        for (int64_t i = 0; i < b->n_features; i++)
            to_lanes(p->tokens + row * pitch + i * d, pitch, n, d,
                     columns_of(b->x + (g * b->n_features + i) * b->step, b->step));
    }
}

static void normalize_lanes(Bundle *b) {
    int64_t d = b->d;
    const float *scale = vector_of(b, NORM);
    for (int64_t i = 0; i < b->n; i++) {
        const float *x = b->x + i * b->step;
        vec sum = {0};
        for (int64_t j = 0; j < d; j++) sum += load(x + j * LANES) * load(x + j * LANES);
        vec inverse = inverse_root(sum * (1.0f / (float)d) + NORM_EPSILON);
        store(b->inverse + i * LANES, inverse);
        for (int64_t j = 0; j < d; j++)
            store(b->normed + i * b->step + j * LANES, load(x + j * LANES) * inverse * scale[j]);
    }
}

/* First column, among those of blocks, of a block; there is one per group and head. */
INLINE int64_t block_column(const Bundle *b, int64_t block) {
    return block * b->n_groups * b->n_heads;
}

/* Cut the keys (part 0) or values (part 1) into blocks, with the offsets of their places. */
static void cut_lane_blocks(Bundle *b, int part) {
    int64_t size = b->problem->compress_block, d_head = b->d_head;
    const float *offset = vector_of(b, part ? V_OFFSET : K_OFFSET);
    float *to = b->blocks[part];
    for (int64_t block = 0; block < b->n_blocks; block++)
        for (int64_t g = 0; g < b->n_groups; g++)
            for (int64_t h = 0; h < b->n_heads; h++, to += b->block_step) {
                int64_t first = block * size, n = least(size, b->n_features - first);
                const float *x = b->qkv + (g * b->n_features + first) * b->qkv_step +
                                 ((1 + part) * b->d + h * d_head) * LANES;
                for (int64_t i = 0; i < n; i++, x += b->qkv_step)
                    for (int64_t c = 0; c < d_head; c++)
                        store(to + (i * d_head + c) * LANES,
                              load(x + c * LANES) + offset[i * d_head + c]);
            }
}

/* Columns of whole blocks, and of the last one if it is partial, with their numbers of inputs. */
typedef struct {
    int64_t from, n, width;
} Stretch;

static int stretches(const Bundle *b, Stretch *parts) {
    int64_t size = b->problem->compress_block, n_full = b->n_features / size;
    int n = 0;
    if (n_full) parts[n++] = (Stretch){0, block_column(b, n_full), size * b->d_head};
    if (n_full < b->n_blocks)
        parts[n++] = (Stretch){block_column(b, n_full), block_column(b, 1),
                               (b->n_features - n_full * size) * b->d_head};
    return n;
}

/* Keys and values of blocks: a layer with GELU over each block of a head, then a linear one. */
static void compress_lanes(Bundle *b) {
    Stretch parts[2];
    int n_parts = stretches(b, parts);
    int64_t n = block_column(b, b->n_blocks);
    for (int part = 0; part < 2; part++) {
        int first = part ? V_OFFSET : K_OFFSET;
        Grid hidden = columns_of(b->hidden[part], b->hidden_step);
        cut_lane_blocks(b, part);
        for (int s = 0; s < n_parts; s++) {
            Grid x = columns_of(b->blocks[part] + parts[s].from * b->block_step, b->block_step);
            Grid y = columns_of(hidden.data + parts[s].from * b->hidden_step, b->hidden_step);
            lane_product(matrix_of(b, first + 1), vector_of(b, first + 2), x, y, b->n_hidden,
                         parts[s].n, parts[s].width, SET);
        }
        for (int64_t i = 0; i < n * b->hidden_step; i += LANES)
            store(b->active + i, gelu_vec(load(hidden.data + i)));
        lane_product(matrix_of(b, first + 3), vector_of(b, first + 4),
                     columns_of(b->active, b->hidden_step),
                     columns_of(b->compressed[part], b->d_head * LANES), b->d_head, n, b->n_hidden, SET);
    }
}

static void project_lanes(Bundle *b) {
    int64_t d = b->d, n_gates = 3 * b->n_gates;
    Grid qkv = columns_of(b->qkv, b->qkv_step);
    normalize_lanes(b);
    lane_product(matrix_of(b, QKV), NULL, columns_of(b->normed, b->step), qkv, 3 * d, b->n, d, SET);
    lane_product(matrix_of(b, GATE_W), vector_of(b, GATE_B), qkv, columns_of(b->gates, n_gates * LANES),
                 n_gates, b->n, d, SET);
    for (int64_t i = 0; i < b->n * n_gates * LANES; i += LANES)
        store(b->gates + i, sigmoid_vec(load(b->gates + i)));
    compress_lanes(b);
}

/* Point the attention at one head of one group. */
static Heads *aim_heads(Bundle *b, int64_t group, int64_t head) {
    Heads *h = &b->heads;
    int64_t d = b->d, start = group * b->n_features, at = head * b->d_head * LANES;
    int64_t cmp = (group * b->n_heads + head) * b->d_head * LANES;
    int64_t gate = head % b->n_gates * 3 * LANES, index = (group * b->n_heads + head) * b->n_features;
    const float *qkv = b->qkv + start * b->qkv_step + at;
    h->q = qkv;
    h->k = qkv + d * LANES;
    h->v = qkv + 2 * d * LANES;
    h->k_cmp = b->compressed[0] + cmp;
    h->v_cmp = b->compressed[1] + cmp;
    h->gates = b->gates + start * h->gate_pitch + gate;
    h->out = b->attended + start * h->out_pitch + at;
    h->stats = b->stats ? b->stats + index * 6 * LANES : NULL;
    h->selected = b->selected;
    if (b->problem->attention.selected) h->selected += index * b->problem->attention.n_selected * LANES;
    if (b->d_qkv) {
        float *d_qkv = b->d_qkv + start * b->qkv_step + at;
        h->dq = d_qkv;
        h->dk = d_qkv + d * LANES;
        h->dv = d_qkv + 2 * d * LANES;
        h->dk_cmp = b->d_compressed[0] + cmp;
        h->dv_cmp = b->d_compressed[1] + cmp;
        h->d_gates = b->d_gates + start * h->gate_pitch + gate;
        h->d_out = b->d_attended + start * h->out_pitch + at;
    }
    return h;
}

static void attend_lanes(Bundle *b, int backward) {
    b->heads.cmp_pitch = block_column(b, 1) * b->d_head * LANES;
    for (int64_t g = 0; g < b->n_groups; g++)
        for (int64_t head = 0; head < b->n_heads; head++) {
            Heads *h = aim_heads(b, g, head);
            for (int64_t i = 0; i < b->n_features; i += QUERIES) {
                if (backward)
                    attend_queries_back(h, i);
                else
                    attend_queries(h, i);
            }
        }
}

/* Columns that are blended and mixed together: a chunk of the features, or all of each group. */
typedef struct {
    int64_t from, n, n_groups, n_features;
} Segment;

/* u = token_weight * tokens + attended out^T. */
static void blend_lanes(Bundle *b, Segment s) {
    int64_t d = b->d;
    float weight = vector_of(b, TOKEN_WEIGHT)[0];
    const float *x = b->x + s.from * b->step;
    for (int64_t i = 0; i < s.n * b->step; i += LANES) store(b->u + i, weight * load(x + i));
    lane_product(matrix_of(b, OUT), NULL, columns_of(b->attended + s.from * b->step, b->step),
                 columns_of(b->u, b->step), d, s.n, d, ADD);
}

/* Centre and scale one column; returns the inverse deviation. */
INLINE vec standardize_column(const float *x, int64_t d, float *out) {
    vec sum = {0}, squares = {0};
    for (int64_t j = 0; j < d; j++) sum += load(x + j * LANES);
    vec mean = sum * (1.0f / (float)d);
    for (int64_t j = 0; j < d; j++) {
        vec centred = load(x + j * LANES) - mean;
        squares += centred * centred;
        store(out + j * LANES, centred);
    }
    vec rate = inverse_root(squares * (1.0f / (float)d) + LAYER_EPSILON);
    for (int64_t j = 0; j < d; j++) store(out + j * LANES, load(out + j * LANES) * rate);
    return rate;
}

/* Both branches of the mixer: e2 before its GELU, f2, and what leads to them. */
static void mix_lanes(Bundle *b, Segment s) {
    int64_t d = b->d, chunk = b->problem->chunk, n = s.n_features;
    const float *scale = vector_of(b, LN1_SCALE), *shift = vector_of(b, LN1_SHIFT);
    for (int64_t i = 0; i < s.n; i++) {
        float *x = b->level + i * b->step;
        store(b->rate + i * LANES, standardize_column(b->u + i * b->step, d, x));
        for (int64_t j = 0; j < d; j++)
            store(x + j * LANES, load(x + j * LANES) * scale[j] + shift[j]);
    }
    lane_product(matrix_of(b, E1_W), vector_of(b, E1_B), columns_of(b->level, b->step),
                 columns_of(b->e1, b->step), d, s.n, d, SET_RELU);
    lane_product(matrix_of(b, E2_W), vector_of(b, E2_B), columns_of(b->e1, b->step),
                 columns_of(b->e2, b->step), d, s.n, d, SET);
    for (int64_t g = 0; g < s.n_groups; g++) {
        /* Over features: their numbers in one component are a column. */
        Grid level = features_of(b->level + g * n * b->step, b->step);
        Grid f1 = features_of(b->f1 + g * chunk * b->step, b->step);
        Grid f2 = features_of(b->f2 + g * n * b->step, b->step);
        lane_product(matrix_of(b, F1_W), vector_of(b, F1_B), level, f1, chunk, d, n, SET_RELU);
        lane_product(matrix_of(b, F2_W), vector_of(b, F2_B), f1, f2, n, d, chunk, SET);
    }
}

INLINE vec sum_column(const float *x, int64_t d) {
    vec sum = {0};
    for (int64_t j = 0; j < d; j++) sum += load(x + j * LANES);
    return sum;
}

/* Sum over the token axis of SiLU(LayerNorm(GELU(e2) * f2)). */
INLINE vec fuse_lanes(Bundle *b, int64_t i) {
    int64_t d = b->d;
    const float *scale = vector_of(b, LN2_SCALE), *shift = vector_of(b, LN2_SHIFT);
    const float *e2 = b->e2 + i * b->step, *f2 = b->f2 + i * b->step;
    float *x = b->e1 + i * b->step; /* e1 is not needed any more */
    for (int64_t j = 0; j < d * LANES; j += LANES)
        store(x + j, gelu_vec(load(e2 + j)) * load(f2 + j));
    standardize_column(x, d, x);
    vec sum = {0};
    for (int64_t j = 0; j < d; j++) {
        vec h = load(x + j * LANES) * scale[j] + shift[j];
        sum += h * sigmoid_vec(h);
    }
    return sum;
}

/* Where the result (number 0) or the pools (1, 2, ...) of a column's first row are. */
INLINE int64_t place_of(const Bundle *b, int64_t column, int64_t first_row, int64_t number) {
    int64_t row = first_row + column / b->n_features * LANES, feature = column % b->n_features;
    int64_t pools = b->n_features + feature * b->problem->n_pools;
    return row * row_width(b->problem) + (number ? pools + number - 1 : feature);
}

INLINE int64_t rows_of(const Bundle *b, int64_t column, int64_t first_row) {
    int64_t row = first_row + column / b->n_features * LANES;
    return least(LANES, b->problem->attention.n_rows - row);
}

/* One number of each row of a column. */
INLINE void scatter(const Bundle *b, int64_t column, int64_t first_row, int64_t number, vec x) {
    float *out = b->problem->out + place_of(b, column, first_row, number);
    int64_t n = rows_of(b, column, first_row), width = row_width(b->problem);
    for (int64_t r = 0; r < n; r++) out[r * width] = x[r];
}

INLINE vec gather(const Bundle *b, int64_t column, int64_t first_row, int64_t number) {
    const float *d_out = b->problem->d_out + place_of(b, column, first_row, number);
    int64_t n = rows_of(b, column, first_row), width = row_width(b->problem);
    vec x = {0};
    for (int64_t r = 0; r < n; r++) x[r] = d_out[r * width];
    return x;
}

static void forward_segment(Bundle *b, Segment s, int64_t first_row) {
    const Interaction *p = b->problem;
    int64_t d = b->d;
    float mixed = vector_of(b, MIXED_WEIGHT)[0], skip = vector_of(b, SKIP_WEIGHT)[0];
    blend_lanes(b, s);
    if (p->chunk) mix_lanes(b, s);
    for (int64_t i = 0; i < s.n; i++) {
        vec sum = (1.0f + mixed) * sum_column(b->u + i * b->step, d) +
                  skip * sum_column(b->x + (s.from + i) * b->step, d);
        if (p->chunk) sum += fuse_lanes(b, i);
        sum *= 1.0f / (float)d;
        scatter(b, s.from + i, first_row, 0, sum);
        for (int64_t k = 0, size = p->n_pools ? d / p->n_pools : 0; k < p->n_pools; k++) {
            const float *part = b->x + (s.from + i) * b->step + k * size * LANES;
            scatter(b, s.from + i, first_row, 1 + k, sum_column(part, size) / (float)size);
        }
    }
}

/* The segment that begins at a column; all of the bundle where no chunk cuts its features. */
static Segment segment_at(const Bundle *b, int64_t from) {
    int64_t chunk = b->problem->chunk, n_features = b->n_features;
    if (!chunk || chunk >= n_features) return (Segment){0, b->n, b->n_groups, n_features};
    int64_t n = least(chunk, n_features - from % n_features);
    return (Segment){from, n, 1, n};
}

static void forward_bundle(Bundle *b, int64_t first_row) {
    load_tokens(b, first_row);
    project_lanes(b);
    attend_lanes(b, 0);
    for (int64_t from = 0; from < b->n;) {
        Segment s = segment_at(b, from);
        forward_segment(b, s, first_row);
        from += s.n;
    }
}

/* ---- backward ---- */

/* From d_xhat to dx of a standardisation, in place. */
INLINE void unstandardize_column(const float *xhat, vec rate, int64_t d, float *d_xhat) {
    vec sum = {0}, dot = {0};
    for (int64_t j = 0; j < d * LANES; j += LANES) {
        sum += load(d_xhat + j);
        dot += load(d_xhat + j) * load(xhat + j);
    }
    vec mean = sum * (1.0f / (float)d), slope = dot * (1.0f / (float)d);
    for (int64_t j = 0; j < d * LANES; j += LANES)
        store(d_xhat + j, (load(d_xhat + j) - mean - load(xhat + j) * slope) * rate);
}

INLINE void add_vec(float *to, vec x) { store(to, load(to) + x); }

/* Sums of `d` vectors are added to a parameter's gradient and start again at zero. */
static void collect(float *sums, int64_t d, float *total) {
    lane_sums((Grid){sums, LANES, 0}, d, 1, total);
    memset(sums, 0, sizeof(vec) * d);
}

/* Gradients of e2 (before GELU, in d_e) and f2 (in d_f) of a column, from that of its mean. */
static void fuse_lanes_back(Bundle *b, int64_t i, vec d_mean, float *scales, float *shifts) {
    int64_t d = b->d;
    const float *scale = vector_of(b, LN2_SCALE), *shift = vector_of(b, LN2_SHIFT);
    const float *e2 = b->e2 + i * b->step, *f2 = b->f2 + i * b->step;
    float *d_e = b->d_e + i * b->step, *d_f = b->d_f + i * b->step;
    float *xhat = b->scratch, *active = xhat + d * LANES, *d_x = active + d * LANES;
    for (int64_t j = 0; j < d * LANES; j += LANES) {
        vec x = load(e2 + j), density, area = normal_vec(x, &density);
        store(active + j, x * area);
        store(d_e + j, area + x * density); /* slope of the GELU */
        store(xhat + j, x * area * load(f2 + j));
    }
    vec rate = standardize_column(xhat, d, xhat);
    for (int64_t j = 0; j < d; j++) {
        int64_t at = j * LANES;
        vec h = load(xhat + at) * scale[j] + shift[j], s = sigmoid_vec(h);
        vec d_h = d_mean * s * (1.0f + h * (1.0f - s));
        add_vec(scales + at, d_h * load(xhat + at));
        add_vec(shifts + at, d_h);
        store(d_x + at, d_h * scale[j]);
    }
    unstandardize_column(xhat, rate, d, d_x);
    for (int64_t j = 0; j < d * LANES; j += LANES) {
        vec dx = load(d_x + j);
        store(d_e + j, dx * load(f2 + j) * load(d_e + j));
        store(d_f + j, dx * load(active + j));
    }
}

/* Sums over components and lanes for each of n features, added to `total`. */
static void feature_sums(const Bundle *b, const float *x, int64_t n, float *total) {
    for (int64_t i = 0; i < n; i++) total[i] += sum_lanes(sum_column(x + i * b->step, b->d));
}

/* Through the branch over features of one group: d_level += what d_f brings; uses d_g. */
static void mix_features_back(Bundle *b, int64_t n, int64_t group) {
    int64_t d = b->d, chunk = b->problem->chunk;
    float **total = b->total, *f1_data = b->f1 + group * chunk * b->step;
    float *d_f_data = b->d_f + group * n * b->step;
    Grid level = features_of(b->level + group * n * b->step, b->step), f1 = features_of(f1_data, b->step);
    Grid d_f = features_of(d_f_data, b->step), d_g = features_of(b->d_g, b->step);
    Grid d_level = features_of(b->d_level + group * n * b->step, b->step);
    feature_sums(b, d_f_data, n, total[F2_B]);
    lane_gradient(d_f, f1, n, chunk, d, total[F2_W], chunk);
    lane_product(turned(matrix_of(b, F2_W)), NULL, d_f, d_g, chunk, d, n, SET);
    relu_back(f1_data, chunk * b->step, b->d_g);
    feature_sums(b, b->d_g, chunk, total[F1_B]);
    lane_gradient(d_g, level, chunk, n, d, total[F1_W], chunk);
    lane_product(turned(matrix_of(b, F1_W)), NULL, d_g, d_level, n, d, chunk, ADD);
}

/* From d_e and d_f to d_level, then through the layer norm. */
static void mix_lanes_back(Bundle *b, Segment s) {
    int64_t d = b->d;
    float **total = b->total, *scales = b->scratch, *shifts = scales + d * LANES;
    Grid d_e = columns_of(b->d_e, b->step), e1 = columns_of(b->e1, b->step), d_g = columns_of(b->d_g, b->step);
    Grid level = columns_of(b->level, b->step), d_level = columns_of(b->d_level, b->step);
    lane_sums(d_e, d, s.n, total[E2_B]);
    lane_gradient(d_e, e1, d, d, s.n, total[E2_W], d);
    lane_product(turned(matrix_of(b, E2_W)), NULL, d_e, d_g, d, s.n, d, SET);
    relu_back(b->e1, s.n * b->step, b->d_g);
    lane_sums(d_g, d, s.n, total[E1_B]);
    lane_gradient(d_g, level, d, d, s.n, total[E1_W], d);
    lane_product(turned(matrix_of(b, E1_W)), NULL, d_g, d_level, d, s.n, d, SET);
    for (int64_t g = 0; g < s.n_groups; g++) mix_features_back(b, s.n_features, g);

    const float *scale = vector_of(b, LN1_SCALE);
    memset(scales, 0, sizeof(vec) * 2 * d);
    for (int64_t i = 0; i < s.n; i++) {
        float *xhat = b->level + i * b->step, *dx = b->d_level + i * b->step;
        standardize_column(b->u + i * b->step, d, xhat);
        for (int64_t j = 0; j < d; j++) {
            vec g = load(dx + j * LANES);
            add_vec(scales + j * LANES, g * load(xhat + j * LANES));
            add_vec(shifts + j * LANES, g);
            store(dx + j * LANES, g * scale[j]);
        }
        unstandardize_column(xhat, load(b->rate + i * LANES), d, dx);
    }
    collect(scales, d, total[LN1_SCALE]);
    collect(shifts, d, total[LN1_SHIFT]);
}

/* Gradients of the mean of each column, (row, feature) -> lanes. */
INLINE vec d_mean_of(const Bundle *b, int64_t column, int64_t first_row) {
    return gather(b, column, first_row, 0) * (1.0f / (float)b->d);
}

/* To the gradients of the attended tokens, and the direct part of the tokens'. */
static void backward_segment(Bundle *b, Segment s, int64_t first_row) {
    const Interaction *p = b->problem;
    int64_t d = b->d;
    float mixed = vector_of(b, MIXED_WEIGHT)[0], skip = vector_of(b, SKIP_WEIGHT)[0];
    float weight = vector_of(b, TOKEN_WEIGHT)[0], *scales = b->scratch + 3 * d * LANES;
    blend_lanes(b, s);
    if (p->chunk) {
        mix_lanes(b, s);
        memset(scales, 0, sizeof(vec) * 2 * d);
        for (int64_t i = 0; i < s.n; i++)
            fuse_lanes_back(b, i, d_mean_of(b, s.from + i, first_row), scales, scales + d * LANES);
        collect(scales, d, b->total[LN2_SCALE]);
        collect(scales + d * LANES, d, b->total[LN2_SHIFT]);
        mix_lanes_back(b, s);
    }
    vec d_mixed = {0}, d_skip = {0}, d_weight = {0};
    for (int64_t i = 0; i < s.n; i++) {
        const float *x = b->x + (s.from + i) * b->step, *d_level = b->d_level + i * b->step;
        float *d_u = b->d_u + i * b->step, *d_x = b->d_x + (s.from + i) * b->step;
        vec d_mean = d_mean_of(b, s.from + i, first_row);
        d_mixed += d_mean * sum_column(b->u + i * b->step, d);
        d_skip += d_mean * sum_column(x, d);
        for (int64_t j = 0; j < d * LANES; j += LANES) {
            vec g = d_mean * (1.0f + mixed);
            if (p->chunk) g += load(d_level + j);
            store(d_u + j, g);
            d_weight += g * load(x + j);
            store(d_x + j, weight * g + skip * d_mean);
        }
        for (int64_t k = 0, size = p->n_pools ? d / p->n_pools : 0; k < p->n_pools; k++) {
            vec slope = gather(b, s.from + i, first_row, 1 + k) / (float)size;
            for (int64_t j = k * size; j < (k + 1) * size; j++) add_vec(d_x + j * LANES, slope);
        }
    }
    b->total[MIXED_WEIGHT][0] += sum_lanes(d_mixed);
    b->total[SKIP_WEIGHT][0] += sum_lanes(d_skip);
    b->total[TOKEN_WEIGHT][0] += sum_lanes(d_weight);
    float *attended = b->attended + s.from * b->step, *d_attended = b->d_attended + s.from * b->step;
    lane_gradient(columns_of(b->d_u, b->step), columns_of(attended, b->step), d, d, s.n, b->total[OUT], d);
    lane_product(turned(matrix_of(b, OUT)), NULL, columns_of(b->d_u, b->step), columns_of(d_attended, b->step),
                 d, s.n, d, SET);
}

/* The gradients of blocks go to the keys or values that they were cut from, and to the offsets. */
static void join_lane_blocks(Bundle *b, int part) {
    int64_t size = b->problem->compress_block, d_head = b->d_head, width = size * d_head;
    float *sums = b->scratch;
    const float *from = b->blocks[part];
    memset(sums, 0, sizeof(vec) * width);
    for (int64_t block = 0; block < b->n_blocks; block++)
        for (int64_t g = 0; g < b->n_groups; g++)
            for (int64_t h = 0; h < b->n_heads; h++, from += b->block_step) {
                int64_t first = block * size, n = least(size, b->n_features - first);
                float *to = b->d_qkv + (g * b->n_features + first) * b->qkv_step +
                            ((1 + part) * b->d + h * d_head) * LANES;
                for (int64_t i = 0; i < n; i++, to += b->qkv_step)
                    for (int64_t c = 0; c < d_head; c++) {
                        vec dx = load(from + (i * d_head + c) * LANES);
                        add_vec(to + c * LANES, dx);
                        add_vec(sums + (i * d_head + c) * LANES, dx);
                    }
            }
    collect(sums, width, b->total[part ? V_OFFSET : K_OFFSET]);
}

static void compress_lanes_back(Bundle *b) {
    Stretch parts[2];
    int n_parts = stretches(b, parts);
    int64_t width = b->problem->compress_block * b->d_head, n = block_column(b, b->n_blocks);
    int64_t n_hidden = b->n_hidden, d_head = b->d_head;
    for (int part = 0; part < 2; part++) {
        int first = part ? V_OFFSET : K_OFFSET;
        float **total = b->total, *hidden = b->hidden[part], *d_hidden = b->active;
        Grid dy = columns_of(b->d_compressed[part], d_head * LANES);
        lane_sums(dy, d_head, n, total[first + 4]);
        lane_product(turned(matrix_of(b, first + 3)), NULL, dy, columns_of(d_hidden, b->hidden_step),
                     n_hidden, n, d_head, SET);
        for (int64_t i = 0; i < n * b->hidden_step; i += LANES) {
            vec x = load(hidden + i), density, area = normal_vec(x, &density);
            store(d_hidden + i, load(d_hidden + i) * (area + x * density));
            store(hidden + i, x * area);
        }
        lane_gradient(dy, columns_of(hidden, b->hidden_step), d_head, n_hidden, n, total[first + 3],
                      n_hidden);
        lane_sums(columns_of(d_hidden, b->hidden_step), n_hidden, n, total[first + 2]);
        for (int s = 0; s < n_parts; s++) {
            Grid dh = columns_of(d_hidden + parts[s].from * b->hidden_step, b->hidden_step);
            Grid x = columns_of(b->blocks[part] + parts[s].from * b->block_step, b->block_step);
            lane_gradient(dh, x, n_hidden, parts[s].width, parts[s].n, total[first + 1], width);
            /* The blocks' own gradients take their place. */
            lane_product(turned(matrix_of(b, first + 1)), NULL, dh, x, parts[s].width, parts[s].n,
                         n_hidden, SET);
        }
        join_lane_blocks(b, part);
    }
}

/* Gradients of the gates reach the queries, those of queries, keys and values the tokens. */
static void project_lanes_back(Bundle *b) {
    int64_t d = b->d, n_gates = 3 * b->n_gates, n = b->n;
    Grid d_gates = columns_of(b->d_gates, n_gates * LANES), d_qkv = columns_of(b->d_qkv, b->qkv_step);
    for (int64_t i = 0; i < n * n_gates * LANES; i += LANES) {
        vec gate = load(b->gates + i);
        store(b->d_gates + i, load(b->d_gates + i) * gate * (1.0f - gate));
    }
    lane_sums(d_gates, n_gates, n, b->total[GATE_B]);
    lane_gradient(d_gates, columns_of(b->qkv, b->qkv_step), n_gates, d, n, b->total[GATE_W], d);
    lane_product(turned(matrix_of(b, GATE_W)), NULL, d_gates, d_qkv, d, n, n_gates, ADD);

    lane_gradient(d_qkv, columns_of(b->normed, b->step), 3 * d, d, n, b->total[QKV], d);
    float *d_normed = b->d_attended, *sums = b->scratch; /* its room is free by now */
    lane_product(turned(matrix_of(b, QKV)), NULL, d_qkv, columns_of(d_normed, b->step), d, n, 3 * d, SET);
    const float *scale = vector_of(b, NORM);
    memset(sums, 0, sizeof(vec) * d);
    for (int64_t i = 0; i < n; i++) {
        const float *x = b->x + i * b->step, *dy = d_normed + i * b->step;
        float *d_x = b->d_x + i * b->step;
        vec inverse = load(b->inverse + i * LANES), dot = {0};
        for (int64_t j = 0; j < d; j++) {
            vec product = load(dy + j * LANES) * load(x + j * LANES) * inverse;
            add_vec(sums + j * LANES, product);
            dot += product * scale[j];
        }
        vec slope = dot * (1.0f / (float)d) * inverse * inverse;
        for (int64_t j = 0; j < d; j++)
            add_vec(d_x + j * LANES, load(dy + j * LANES) * scale[j] * inverse -
                                         load(x + j * LANES) * slope);
    }
    collect(sums, d, b->total[NORM]);
}

static void backward_bundle(Bundle *b, int64_t first_row) {
    const Interaction *p = b->problem;
    int64_t d = b->d, pitch = b->n_features * d;
    load_tokens(b, first_row);
    project_lanes(b);
    for (int64_t from = 0; from < b->n;) {
        Segment s = segment_at(b, from);
        backward_segment(b, s, first_row);
        from += s.n;
    }
    memset(b->d_qkv, 0, sizeof(float) * b->n * b->qkv_step);
    memset(b->d_gates, 0, sizeof(vec) * b->n * 3 * b->n_gates);
    for (int i = 0; i < 2; i++)
        memset(b->d_compressed[i], 0, sizeof(vec) * block_column(b, b->n_blocks) * b->d_head);
    attend_lanes(b, 1);
    compress_lanes_back(b);
    project_lanes_back(b);
    for (int64_t g = 0; g < b->n_groups; g++) {
        int64_t row = first_row + g * LANES, n = least(LANES, p->attention.n_rows - row);
        for (int64_t i = 0; i < b->n_features; i++)
            from_lanes(columns_of(b->d_x + (g * b->n_features + i) * b->step, b->step), d,
                       p->d_tokens + row * pitch + i * d, pitch, n);
    }
}

/* ---- memory, threads, parts of the batch ---- */

INLINE int64_t odd(int64_t n) { return n | 1; }

static int64_t groups_per_bundle(const Interaction *p) {
    int64_t n_features = p->attention.n_features;
    if (n_features >= BUNDLE_COLUMNS || (p->chunk && p->chunk < n_features)) return 1;
    return (BUNDLE_COLUMNS + n_features - 1) / n_features;
}

static size_t lay_out_heads(const Interaction *p, Heads *h, char *base) {
    size_t used = 0;
    int64_t n = p->attention.n_features, n_blocks = p->attention.n_compressed;
    h->problem = &p->attention;
    h->n_features = n;
    h->d_head = p->attention.d_head;
    h->n_blocks = n_blocks;
    h->pitch = odd(3 * p->d_token) * LANES;
    h->out_pitch = odd(p->d_token) * LANES;
    h->gate_pitch = 3 * p->n_gates * LANES;
    h->scale = 1.0f / __builtin_sqrtf((float)h->d_head);
    h->log2_scale = h->scale * 1.44269504f;
    h->logits = take(base, &used, QUERIES * n * LANES);
    h->dp = take(base, &used, QUERIES * n * LANES);
    h->cmp_logits = take(base, &used, QUERIES * n_blocks * LANES);
    h->cmp_dp = take(base, &used, QUERIES * n_blocks * LANES);
    h->window = take(base, &used, 2 * n * LANES);
    h->mask = take(base, &used, QUERIES * n_blocks * LANES);
    h->keys = take(base, &used, n);
    h->blocks = take(base, &used, n_blocks);
    h->first = take(base, &used, n_blocks);
    h->count = take(base, &used, n_blocks);
    for (int64_t i = 0; base && i < n_blocks; i++) h->count[i] = (int32_t)i;
    return used;
}

static size_t lay_out_bundle(const Batch *batch, Bundle *b, char *base) {
    const Interaction *p = batch->problem;
    int64_t d = p->d_token, d_head = p->attention.d_head, n_heads = p->attention.n_heads;
    int64_t n_features = p->attention.n_features, n_blocks = p->attention.n_compressed;
    int64_t n_groups = groups_per_bundle(p), n = n_groups * n_features;
    int64_t n_block_columns = n_blocks * n_groups * n_heads, width = p->compress_block * d_head;
    int64_t chunk = p->chunk && p->chunk < n_features ? p->chunk : n_features;
    int64_t n_mixed = n_groups * chunk; /* columns of a segment */
    size_t used = 0;
#define TAKE(count) take(base, &used, (count) * LANES)
    b->problem = p;
    b->n_features = n_features;
    b->d = d;
    b->d_head = d_head;
    b->n_heads = n_heads;
    b->n_gates = p->n_gates;
    b->n_blocks = n_blocks;
    b->n_hidden = p->parameter[K_W1].rows;
    b->step = odd(d) * LANES;
    b->qkv_step = odd(3 * d) * LANES;
    b->block_step = odd(width) * LANES;
    b->hidden_step = odd(b->n_hidden) * LANES;
    b->x = TAKE(n * odd(d));
    b->normed = TAKE(n * odd(d));
    b->inverse = TAKE(n);
    b->qkv = TAKE(n * odd(3 * d));
    b->gates = TAKE(n * 3 * p->n_gates);
    b->active = TAKE(n_block_columns * odd(b->n_hidden));
    for (int i = 0; i < 2; i++) {
        b->blocks[i] = TAKE(n_block_columns * odd(width));
        b->hidden[i] = TAKE(n_block_columns * odd(b->n_hidden));
        b->compressed[i] = TAKE(n_block_columns * d_head);
    }
    b->u = TAKE(n_mixed * odd(d));
    b->level = TAKE(n_mixed * odd(d));
    b->rate = TAKE(n_mixed);
    b->e1 = TAKE(n_mixed * odd(d));
    b->e2 = TAKE(n_mixed * odd(d));
    b->f1 = TAKE(n_mixed * odd(d));
    b->f2 = TAKE(n_mixed * odd(d));
    b->attended = p->attended ? NULL : TAKE(n * odd(d));
    b->selected = p->attention.selected ? NULL : TAKE(n_features * p->attention.n_selected);
    if (batch->backward) {
        b->d_attended = TAKE(n * odd(d));
        b->d_x = TAKE(n * odd(d));
        b->d_qkv = TAKE(n * odd(3 * d));
        b->d_gates = TAKE(n * 3 * p->n_gates);
        for (int i = 0; i < 2; i++) b->d_compressed[i] = TAKE(n_block_columns * d_head);
        b->d_u = TAKE(n_mixed * odd(d));
        b->d_level = TAKE(n_mixed * odd(d));
        b->d_e = TAKE(n_mixed * odd(d));
        b->d_f = TAKE(n_mixed * odd(d));
        b->d_g = TAKE(n_mixed * odd(d));
        b->scratch = TAKE(5 * d > width ? 5 * d : width);
    }
#undef TAKE
    return used + lay_out_heads(p, &b->heads, base ? base + used : NULL);
}

static void run_bundle(Bundle *b, int64_t first_row, int backward) {
    const Interaction *p = b->problem;
    int64_t n_features = b->n_features, left = p->attention.n_rows - first_row;
    b->n_groups = least(groups_per_bundle(p), (left + LANES - 1) / LANES);
    b->n = b->n_groups * n_features;
    if (p->attended) b->attended = p->attended + first_row / LANES * n_features * b->step;
    if (p->attention.stats) b->stats = p->attention.stats + first_row * b->n_heads * 6 * n_features;
    if (p->attention.selected)
        b->selected = p->attention.selected +
                      first_row * b->n_heads * n_features * p->attention.n_selected;
    if (backward)
        backward_bundle(b, first_row);
    else
        forward_bundle(b, first_row);
}

static void work_bundles(void *argument) {
    Batch *batch = argument;
    Bundle b;
    memset(&b, 0, sizeof b);
    char *memory = borrow(lay_out_bundle(batch, &b, NULL));
    if (!memory) return; /* the other threads take over */
    lay_out_bundle(batch, &b, memory);
    int64_t n_rows = batch->problem->attention.n_rows;
    int64_t step = groups_per_bundle(batch->problem) * LANES, n = (n_rows + step - 1) / step;
    for (;;) {
        int64_t part = __atomic_fetch_add(&batch->next, 1, __ATOMIC_RELAXED);
        if (part >= batch->n_parts) break;
        if (batch->backward) memcpy(b.total, batch->total + part * N_PARAMETERS, sizeof b.total);
        int64_t last = (part + 1) * n / batch->n_parts;
        for (int64_t i = part * n / batch->n_parts; i < last; i++)
            run_bundle(&b, i * step, batch->backward);
    }
    give_back(memory);
}
