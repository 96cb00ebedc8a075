/* The regression head on the CPU, forward and backward, with rows in the lanes of vectors.
 *
 * Number i of LANES rows is a vector; the vectors of all groups of rows lie side by side. A product
 * with weights takes the weights as they are, and a gradient of weights sums over groups and lanes.
 * No row meets another: its result is the same to the bit in any batch. Included by interaction.c.
 */

/* In the order of PARAMETERS in kernels/head.py. */
enum {
    FIRST_W1, FIRST_B1, FIRST_W2, FIRST_B2, DECODER_FACTOR, DECODER_W, DECODER_B,
    SECOND_W1, SECOND_B1, SECOND_W2, SECOND_B2, DECODER2_W, DECODER2_B,
    THIRD_W1, THIRD_B1, THIRD_W2, THIRD_B2, FUSION_W1, FUSION_B1, FUSION_W2, FUSION_B2,
    N_HEAD_PARAMETERS
};

#define HEAD_GROUPS (2 * COLUMNS) /* groups of rows that go through all layers together */
#define HEAD_ROWS 32              /* rows of a matrix whose gradients are one piece of work */

typedef struct {
    int64_t n_rows, n_inputs, n_hidden, n_half, n_targets;
    int64_t n_rank; /* of the first decoder's factors; 0 where it is one matrix */
    int64_t n_threads;
    const float *x;     /* (row, input) */
    float *out;         /* (row, target) */
    const float *d_out; /* (row, target) */
    float *d_x;         /* (row, input) */
    float *saved;       /* what the backward pass takes over, or NULL */
    void (*parallel)(void (*)(void *), void *, unsigned n, unsigned flags); /* or NULL */
    Parameter parameter[N_HEAD_PARAMETERS];
} Head;

/* Layers of all rows: [number][group]. Those of the backward pass have the same shapes. */
typedef struct {
    float *x, *first, *z, *factor, *second, *w, *third, *joint, *fusion;
} Layers;

typedef struct {
    const Head *problem;
    int64_t n_groups, pitch; /* pitch: groups, odd, so that rows spread over the cache */
    Layers value, d, active; /* `first` to `fusion` are before their GELU, in `active` after it */
    float *gelu, *correction; /* of the forward pass */
    int64_t next, n_parts;
    int phase;
} HeadJob;

enum { HEAD_FORWARD, HEAD_BACKWARD, HEAD_GRADIENTS };

static size_t lay_out_layers(const Head *p, int64_t pitch, Layers *l, char *base) {
    size_t used = 0;
    int64_t width = pitch * LANES, hidden = p->n_hidden * width;
    l->x = take(base, &used, p->n_inputs * width);
    l->first = take(base, &used, hidden);
    l->z = take(base, &used, p->n_inputs * width);
    l->factor = take(base, &used, p->n_rank * width);
    l->second = take(base, &used, hidden);
    l->w = take(base, &used, p->n_half * width);
    l->third = take(base, &used, hidden);
    l->joint = take(base, &used, (p->n_half + 2 * p->n_targets) * width);
    l->fusion = take(base, &used, hidden);
    return used;
}

INLINE Grid layer(const HeadJob *j, float *data, int64_t group) {
    return (Grid){data + group * LANES, j->pitch * LANES, LANES};
}

INLINE Weights head_matrix(const HeadJob *j, int parameter) {
    const Parameter *p = &j->problem->parameter[parameter];
    return (Weights){p->data, p->columns, 1};
}

INLINE const float *head_bias(const HeadJob *j, int parameter) {
    return j->problem->parameter[parameter].data;
}

/* y = bias + w x for some groups; -1 is no bias. */
static void head_linear(const HeadJob *j, int weight, int bias, float *x, float *y, int64_t group,
                        int64_t n) {
    const Parameter *p = &j->problem->parameter[weight];
    lane_product(head_matrix(j, weight), bias < 0 ? NULL : head_bias(j, bias), layer(j, x, group),
                 layer(j, y, group), p->rows, n, p->columns, SET);
}

/* dx = or += w^T dy. */
static void head_linear_back(const HeadJob *j, int weight, float *dy, float *dx, int64_t group,
                             int64_t n, int mode) {
    const Parameter *p = &j->problem->parameter[weight];
    lane_product(turned(head_matrix(j, weight)), NULL, layer(j, dy, group), layer(j, dx, group),
                 p->columns, n, p->rows, mode);
}

static void head_add(const HeadJob *j, const float *x, float *to, int64_t count, int64_t group,
                     int64_t n) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t g = 0; g < n; g++) {
            int64_t at = (i * j->pitch + group + g) * LANES;
            store(to + at, load(to + at) + load(x + at));
        }
}

/* y = W2 gelu(h) + b2 with h = W1 x + b1, which stays. */
static void head_mlp(const HeadJob *j, int first, float *x, float *h, float *y, int64_t group,
                     int64_t n) {
    head_linear(j, first, first + 1, x, h, group, n);
    for (int64_t i = 0; i < j->problem->n_hidden; i++)
        for (int64_t g = 0; g < n; g++) {
            int64_t at = (i * j->pitch + group + g) * LANES;
            store(j->gelu + at, gelu_vec(load(h + at)));
        }
    head_linear(j, first + 2, first + 3, j->gelu, y, group, n);
}

/* From dy to dx of an MLP; what its gradients of weights need stays in `active` and `d_h`. */
static void head_mlp_back(const HeadJob *j, int first, const float *h, float *active, float *d_h,
                          float *dy, float *dx, int64_t group, int64_t n, int mode) {
    head_linear_back(j, first + 2, dy, d_h, group, n, SET);
    for (int64_t i = 0; i < j->problem->n_hidden; i++)
        for (int64_t g = 0; g < n; g++) {
            int64_t at = (i * j->pitch + group + g) * LANES;
            vec x = load(h + at), density, area = normal_vec(x, &density);
            store(active + at, x * area);
            store(d_h + at, load(d_h + at) * (area + x * density));
        }
    head_linear_back(j, first, d_h, dx, group, n, mode);
}

INLINE float *second_of(const HeadJob *j, const Layers *l) {
    return l->joint + j->problem->n_half * j->pitch * LANES;
}

INLINE float *third_of(const HeadJob *j, const Layers *l) {
    return second_of(j, l) + j->problem->n_targets * j->pitch * LANES;
}

static void head_forward(HeadJob *j, int64_t group, int64_t n) {
    const Head *p = j->problem;
    const Layers *v = &j->value;
    int64_t t = p->n_targets;
    float *y2 = second_of(j, v), *y3 = third_of(j, v), *correction = j->correction;
    for (int64_t g = group; g < group + n; g++)
        to_lanes(p->x + g * LANES * p->n_inputs, p->n_inputs,
                     least(LANES, p->n_rows - g * LANES), p->n_inputs, layer(j, v->x, g));
    head_mlp(j, FIRST_W1, v->x, v->first, v->z, group, n);
    head_add(j, v->x, v->z, p->n_inputs, group, n);
    float *decoded = v->z;
    if (p->n_rank) {
        head_linear(j, DECODER_FACTOR, -1, v->z, v->factor, group, n);
        decoded = v->factor;
    }
    head_linear(j, DECODER_W, DECODER_B, decoded, v->joint, group, n);
    head_mlp(j, SECOND_W1, v->x, v->second, v->w, group, n);
    head_add(j, v->joint, v->w, p->n_half, group, n);
    head_linear(j, DECODER2_W, DECODER2_B, v->w, y2, group, n);
    head_mlp(j, THIRD_W1, v->x, v->third, y3, group, n);
    head_add(j, y2, y3, t, group, n);
    head_mlp(j, FUSION_W1, v->joint, v->fusion, correction, group, n);
    head_add(j, y2, correction, t, group, n);
    head_add(j, y3, correction, t, group, n);
    for (int64_t g = group; g < group + n; g++)
        from_lanes(layer(j, correction, g), t, p->out + g * LANES * t, t,
                       least(LANES, p->n_rows - g * LANES));
}

static void head_backward(HeadJob *j, int64_t group, int64_t n) {
    const Head *p = j->problem;
    const Layers *v = &j->value, *d = &j->d, *a = &j->active;
    int64_t t = p->n_targets;
    float *d_y2 = second_of(j, d), *d_y3 = third_of(j, d), *d_out = a->joint;
    for (int64_t g = group; g < group + n; g++)
        to_lanes(p->d_out + g * LANES * t, t, least(LANES, p->n_rows - g * LANES), t,
                     layer(j, d_out, g));
    head_mlp_back(j, FUSION_W1, v->fusion, a->fusion, d->fusion, d_out, d->joint, group, n, SET);
    head_add(j, d_out, d_y3, t, group, n);
    head_add(j, d_out, d_y2, t, group, n);
    head_add(j, d_y3, d_y2, t, group, n);
    head_mlp_back(j, THIRD_W1, v->third, a->third, d->third, d_y3, d->x, group, n, SET);
    head_linear_back(j, DECODER2_W, d_y2, d->w, group, n, SET);
    head_mlp_back(j, SECOND_W1, v->second, a->second, d->second, d->w, d->x, group, n, ADD);
    head_add(j, d->w, d->joint, p->n_half, group, n);
    if (p->n_rank) {
        head_linear_back(j, DECODER_W, d->joint, d->factor, group, n, SET);
        head_linear_back(j, DECODER_FACTOR, d->factor, d->z, group, n, SET);
    } else {
        head_linear_back(j, DECODER_W, d->joint, d->z, group, n, SET);
    }
    head_add(j, d->z, d->x, p->n_inputs, group, n);
    head_mlp_back(j, FIRST_W1, v->first, a->first, d->first, d->z, d->x, group, n, ADD);
    for (int64_t g = group; g < group + n; g++)
        from_lanes(layer(j, d->x, g), p->n_inputs, p->d_x + g * LANES * p->n_inputs,
                       p->n_inputs, least(LANES, p->n_rows - g * LANES));
}

/* A matrix, what it was multiplied with, and the gradient of what came out; -1 without a bias. */
typedef struct {
    int weight, bias;
    float *x, *dy;
} Step;

#define N_STEPS 11

static void head_steps(const HeadJob *j, Step *steps) {
    const Layers *v = &j->value, *d = &j->d, *a = &j->active;
    int factors = j->problem->n_rank > 0;
    Step all[N_STEPS] = {
        {FIRST_W1, FIRST_B1, v->x, d->first},
        {FIRST_W2, FIRST_B2, a->first, d->z},
        {DECODER_FACTOR, -1, v->z, d->factor},
        {DECODER_W, DECODER_B, factors ? v->factor : v->z, d->joint},
        {SECOND_W1, SECOND_B1, v->x, d->second},
        {SECOND_W2, SECOND_B2, a->second, d->w},
        {DECODER2_W, DECODER2_B, v->w, second_of(j, d)},
        {THIRD_W1, THIRD_B1, v->x, d->third},
        {THIRD_W2, THIRD_B2, a->third, third_of(j, d)},
        {FUSION_W1, FUSION_B1, v->joint, d->fusion},
        {FUSION_W2, FUSION_B2, a->fusion, a->joint},
    };
    memcpy(steps, all, sizeof all);
}

/* Piece `part` of the gradients of weights: HEAD_ROWS rows of one of the matrices. */
static void head_gradients(const HeadJob *j, int64_t part) {
    Step steps[N_STEPS];
    head_steps(j, steps);
    for (int s = 0; s < N_STEPS; s++) {
        const Parameter *w = &j->problem->parameter[steps[s].weight];
        int64_t pieces = (w->rows + HEAD_ROWS - 1) / HEAD_ROWS, from = part * HEAD_ROWS;
        if (part >= pieces) {
            part -= pieces;
            continue;
        }
        int64_t n = least(HEAD_ROWS, w->rows - from);
        Grid dy = layer(j, steps[s].dy + from * j->pitch * LANES, 0);
        memset(w->gradient + from * w->columns, 0, sizeof(float) * n * w->columns);
        lane_gradient(dy, layer(j, steps[s].x, 0), n, w->columns, j->n_groups,
                      w->gradient + from * w->columns, w->columns);
        if (steps[s].bias < 0) return;
        float *bias = j->problem->parameter[steps[s].bias].gradient + from;
        memset(bias, 0, sizeof(float) * n);
        lane_sums(dy, n, j->n_groups, bias);
        return;
    }
}

static int64_t count_gradients(const HeadJob *j) {
    Step steps[N_STEPS];
    int64_t n = 0;
    head_steps(j, steps);
    for (int s = 0; s < N_STEPS; s++)
        n += (j->problem->parameter[steps[s].weight].rows + HEAD_ROWS - 1) / HEAD_ROWS;
    return n;
}

/* ---- memory and threads ---- */

static void work_head(void *argument) {
    HeadJob *j = argument;
    for (;;) {
        int64_t part = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
        if (part >= j->n_parts) return;
        int64_t group = part * HEAD_GROUPS, n = least(HEAD_GROUPS, j->n_groups - group);
        if (j->phase == HEAD_FORWARD)
            head_forward(j, group, n);
        else if (j->phase == HEAD_BACKWARD)
            head_backward(j, group, n);
        else
            head_gradients(j, part);
    }
}

static void run_head(HeadJob *j, int phase) {
    j->phase = phase;
    j->next = 0;
    j->n_parts = (j->n_groups + HEAD_GROUPS - 1) / HEAD_GROUPS;
    if (phase == HEAD_GRADIENTS) j->n_parts = count_gradients(j);
    run_threads(work_head, j, least(j->problem->n_threads, j->n_parts), j->problem->parallel);
}

static int64_t head_pitch(const Head *p) { return (p->n_rows + LANES - 1) / LANES | 1; }

/* Number of floats that `saved` has. */
__attribute__((visibility("default"))) int64_t tabnsm_head_saved(const Head *problem) {
    Layers layers;
    return lay_out_layers(problem, head_pitch(problem), &layers, NULL) / sizeof(float);
}

/* Returns 0 on success, 1 when memory ran out. */
__attribute__((visibility("default"))) int tabnsm_head(const Head *problem, int backward) {
    HeadJob job = {.problem = problem, .pitch = head_pitch(problem)};
    job.n_groups = (problem->n_rows + LANES - 1) / LANES;
    size_t size = sizeof(float) * tabnsm_head_saved(problem), used = 0;
    int64_t row = job.pitch * LANES;
    size_t total = 2 * size + sizeof(float) * row * (problem->n_hidden + problem->n_targets) + 128;
    char *memory = borrow(total);
    if (!memory) return 1;
    lay_out_layers(problem, job.pitch, &job.value,
                   problem->saved ? (char *)problem->saved : memory + size);
    if (backward) {
        lay_out_layers(problem, job.pitch, &job.d, memory);
        lay_out_layers(problem, job.pitch, &job.active, memory + size);
        run_head(&job, HEAD_BACKWARD);
        run_head(&job, HEAD_GRADIENTS);
    } else {
        job.gelu = take(memory + 2 * size, &used, problem->n_hidden * row);
        job.correction = take(memory + 2 * size, &used, problem->n_targets * row);
        run_head(&job, HEAD_FORWARD);
    }
    give_back(memory);
    return 0;
}
