/* Products of many table rows at once: a vector holds one number of LANES rows.
 *
 * A "column" is what one token of LANES rows has: `n` numbers, each a vector, one after another. A
 * product with weights then multiplies one weight with a whole vector, whatever the widths are, and
 * sums over tokens, keys or components need no step across lanes. Lanes never meet but in the
 * gradients of weights: what comes out for a row does not depend on the other rows of its vector.
 */

#if defined(__AVX512F__)
#define OUTPUTS 8 /* outputs by columns of a product that are summed at once, in registers */
#define COLUMNS 3
#else
#define OUTPUTS 4
#define COLUMNS 3
#endif
#define GRADIENT_ROWS 4
#define GRADIENT_COLUMNS (LANES / 4)

typedef float loose_quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Number (i, j) of a tensor in lanes is the vector at data + i * row + j * column. */
typedef struct {
    float *data;
    int64_t row, column;
} Grid;

/* Weight (i, j) is data[i * row + j * column]. */
typedef struct {
    const float *data;
    int64_t row, column;
} Weights;

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE Weights turned(Weights w) { return (Weights){w.data, w.column, w.row}; }

INLINE vec inverse_root(vec x) {
#if defined(__AVX512F__) && LANES == 16
    return 1.0f / (vec)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__) && LANES == 8
    return 1.0f / (vec)_mm256_sqrt_ps((__m256)x);
#else
    for (int i = 0; i < LANES; i++) x[i] = __builtin_sqrtf(x[i]);
    return 1.0f / x;
#endif
}

enum { SET, ADD, SET_RELU };

INLINE void lane_tile(Weights w, const float *bias, const float *x, int64_t x_row,
                      int64_t x_column, Grid y, int64_t k, int mode, const int m, const int n) {
    vec sum[OUTPUTS][COLUMNS];
    for (int i = 0; i < m; i++)
        for (int u = 0; u < n; u++)
            sum[i][u] = mode == ADD ? load(y.data + i * y.row + u * y.column)
                                    : splat(bias ? bias[i] : 0.0f);
    for (int64_t j = 0; j < k; j++, x += x_row, w.data += w.column) {
        vec column[COLUMNS];
        for (int u = 0; u < n; u++) column[u] = load(x + u * x_column);
        for (int i = 0; i < m; i++)
            for (int u = 0; u < n; u++) sum[i][u] += w.data[i * w.row] * column[u];
    }
    for (int i = 0; i < m; i++)
        for (int u = 0; u < n; u++) {
            vec total = mode == SET_RELU ? max_vec((vec){0}, sum[i][u]) : sum[i][u];
            store(y.data + i * y.row + u * y.column, total);
        }
}

INLINE void lane_panel(Weights w, const float *bias, const float *x, int64_t x_row,
                       int64_t x_column, Grid y, int64_t m, int64_t k, int mode, const int n) {
    int64_t i = 0;
#define LANE_TILES(count)                                                                       \
    for (; i + count <= m; i += count)                                                          \
    lane_tile((Weights){w.data + i * w.row, w.row, w.column}, bias ? bias + i : NULL, x, x_row, \
              x_column, (Grid){y.data + i * y.row, y.row, y.column}, k, mode, count, n)
    LANE_TILES(OUTPUTS);
    LANE_TILES(4);
    LANE_TILES(1);
#undef LANE_TILES
}

/* y (m, n) = bias + w (m, k) x (k, n), or y += w x; bias may be NULL. */
static void lane_product(Weights w, const float *bias, Grid x, Grid y, int64_t m, int64_t n,
                         int64_t k, int mode) {
    int64_t j = 0;
#define LANE_PANELS(count)                                                                       \
    for (; j + count <= n; j += count)                                                           \
    lane_panel(w, bias, x.data + j * x.column, x.row, x.column,                                  \
               (Grid){y.data + j * y.column, y.row, y.column}, m, k, mode, count)
    LANE_PANELS(COLUMNS);
    LANE_PANELS(2);
    LANE_PANELS(1);
#undef LANE_PANELS
}

/* Joins the sums of spans of 2 * half lanes of two vectors into one vector of spans of `half`. */
INLINE vec fold(vec a, vec b, const int half) {
    ivec low, high;
    for (int i = 0; i < LANES; i++) {
        int begin = i / (2 * half) * (2 * half), place = i - begin;
        low[i] = place < half ? i : LANES + begin + place - half;
        high[i] = place < half ? i + half : LANES + i;
    }
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
}

/* Lane i of the result is the sum of the lanes of x[i]; overwrites x. */
INLINE vec sum_each(vec *x) {
    for (int i = 0; i < LANES / 2; i++) x[i] = fold(x[i], x[i + LANES / 2], LANES / 2);
    for (int i = 0; i < LANES / 4; i++) x[i] = fold(x[i], x[i + LANES / 4], LANES / 4);
#if LANES >= 8
    for (int i = 0; i < LANES / 8; i++) x[i] = fold(x[i], x[i + LANES / 8], LANES / 8);
#endif
#if LANES >= 16
    x[0] = fold(x[0], x[1], 1);
#endif
    return x[0];
}

/* total (m, k) += sum over n columns and all lanes of a (m, n) b (k, n). */
static void lane_gradient(Grid a, Grid b, int64_t m, int64_t k, int64_t n, float *total,
                          int64_t total_row) {
    for (int64_t i = 0; i < m; i += GRADIENT_ROWS)
        for (int64_t j = 0; j < k; j += GRADIENT_COLUMNS) {
            const float *left[GRADIENT_ROWS], *right[GRADIENT_COLUMNS];
            vec sum[LANES] = {{0}};
            /* Past the end the last one is taken again, and its sums are dropped. */
            for (int s = 0; s < GRADIENT_ROWS; s++)
                left[s] = a.data + (i + s < m ? i + s : m - 1) * a.row;
            for (int t = 0; t < GRADIENT_COLUMNS; t++)
                right[t] = b.data + (j + t < k ? j + t : k - 1) * b.row;
            for (int64_t c = 0; c < n; c++) {
                vec x[GRADIENT_COLUMNS];
                for (int t = 0; t < GRADIENT_COLUMNS; t++) x[t] = load(right[t] + c * b.column);
                for (int s = 0; s < GRADIENT_ROWS; s++) {
                    vec y = load(left[s] + c * a.column);
                    for (int t = 0; t < GRADIENT_COLUMNS; t++)
                        sum[s * GRADIENT_COLUMNS + t] += y * x[t];
                }
            }
            vec sums = sum_each(sum);
#if GRADIENT_COLUMNS == 4
            if (i + GRADIENT_ROWS <= m && j + GRADIENT_COLUMNS <= k) {
                Lanes parts = {sums};
                for (int s = 0; s < GRADIENT_ROWS; s++)
                    *(loose_quad *)(total + (i + s) * total_row + j) += parts.part[s];
                continue;
            }
#endif
            for (int s = 0; s < GRADIENT_ROWS && i + s < m; s++)
                for (int t = 0; t < GRADIENT_COLUMNS && j + t < k; t++)
                    total[(i + s) * total_row + j + t] += sums[s * GRADIENT_COLUMNS + t];
        }
}

/* total[i] += sum over n columns and all lanes of a (m, n). */
static void lane_sums(Grid a, int64_t m, int64_t n, float *total) {
    for (int64_t i = 0; i < m; i++) {
        vec sum = {0};
        for (int64_t c = 0; c < n; c++) sum += load(a.data + i * a.row + c * a.column);
        total[i] += sum_lanes(sum);
    }
}

INLINE void turn_quads(quad *x) {
    typedef int32_t iquad __attribute__((vector_size(16)));
    quad a = __builtin_shuffle(x[0], x[1], (iquad){0, 4, 1, 5});
    quad b = __builtin_shuffle(x[0], x[1], (iquad){2, 6, 3, 7});
    quad c = __builtin_shuffle(x[2], x[3], (iquad){0, 4, 1, 5});
    quad d = __builtin_shuffle(x[2], x[3], (iquad){2, 6, 3, 7});
    x[0] = __builtin_shuffle(a, c, (iquad){0, 1, 4, 5});
    x[1] = __builtin_shuffle(a, c, (iquad){2, 3, 6, 7});
    x[2] = __builtin_shuffle(b, d, (iquad){0, 1, 4, 5});
    x[3] = __builtin_shuffle(b, d, (iquad){2, 3, 6, 7});
}

/* `count` numbers of each of n rows to lanes; lanes past the last row are zeros. */
static void to_lanes(const float *rows, int64_t pitch, int64_t n, int64_t count, Grid lanes) {
    for (int64_t r = 0; r < LANES; r += 4) {
        int64_t c = 0;
        for (; c + 4 <= count; c += 4) {
            quad x[4];
            for (int i = 0; i < 4; i++)
                if (r + i < n)
                    x[i] = *(const loose_quad *)(rows + (r + i) * pitch + c);
                else
                    x[i] = (quad){0};
            turn_quads(x);
            for (int i = 0; i < 4; i++)
                *(loose_quad *)(lanes.data + (c + i) * lanes.row + r) = x[i];
        }
        for (; c < count; c++)
            for (int64_t i = r; i < r + 4; i++)
                lanes.data[c * lanes.row + i] = i < n ? rows[i * pitch + c] : 0.0f;
    }
}

static void from_lanes(Grid lanes, int64_t count, float *rows, int64_t pitch, int64_t n) {
    for (int64_t r = 0; r < n; r += 4) {
        int64_t c = 0;
        for (; c + 4 <= count; c += 4) {
            quad x[4];
            for (int i = 0; i < 4; i++)
                x[i] = *(const loose_quad *)(lanes.data + (c + i) * lanes.row + r);
            turn_quads(x);
            for (int i = 0; i < 4 && r + i < n; i++)
                *(loose_quad *)(rows + (r + i) * pitch + c) = x[i];
        }
        for (; c < count; c++)
            for (int64_t i = r; i < r + 4 && i < n; i++)
                rows[i * pitch + c] = lanes.data[c * lanes.row + i];
    }
}
