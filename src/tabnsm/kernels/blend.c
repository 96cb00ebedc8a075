/* The blend of Huber loss and GridLoss of one target, and its slope, value by value.
 *
 * The same formulas as functional/grid_loss.py, which has their reasons, in float64 throughout: a
 * few dozen values in one call, where torch takes forty operators.
 */
#include <math.h>
#include <stdint.h>

typedef struct {
    int64_t n, n_cells;
    double lower, width; /* first anchor, and distance to the last one */
    double temperature;  /* in the units of the values */
    double unit;         /* of GridLoss: the width of a cell, or 1 for index units */
    double huber_weight, huber_delta;
    const float *prediction, *target;
    float *loss, *slope; /* slope of the loss in the prediction */
} Blend;

#define SERIES_BELOW 0.1
#define MIN_STEP 1e-200
#define MAX_STEP 1e200

static double within(double x, double low, double high) {
    return x < low ? low : x > high ? high : x; /* NaN stays */
}

/* 1 / expm1(t) - 1 / t + 1 / 2 for t > 0, given filled = 1 - exp(-t). */
static double remainder_of(double t, double filled) {
    if (t >= SERIES_BELOW) return 1 / filled - 1 / t - 0.5;
    double square = t * t;
    return t * (((-1.0 / 1209600 * square + 1.0 / 30240) * square - 1.0 / 720) * square + 1.0 / 12);
}

/* Expected anchor index of x; its slope goes into *slope. */
static double soft_index(const Blend *b, double step, double of_one, double x, double *slope) {
    double k = (double)b->n_cells, offset = x - b->lower;
    double position = within(within(offset, 0, b->width) / (b->width / k), 0, k);
    double cell = floor(position);
    if (cell > k - 1) cell = k - 1;
    double fraction = position - cell, n_left = cell + 1, n_right = k - cell;
    double left = -expm1(-n_left * step), right = -expm1(-n_right * step);
    /* Steps from the nearest anchor of a side to the mean of that side's anchors. */
    double reach_left = (n_left - 1) / 2 + of_one - n_left * remainder_of(n_left * step, left);
    double reach_right = (n_right - 1) / 2 + of_one - n_right * remainder_of(n_right * step, right);
    double spread = 1 + reach_left + reach_right;
    /* Relative to the nearer of the two neighbouring anchors, so that one mass is near 1. */
    double farther = exp(-fabs(1 - 2 * fraction) * step);
    double mass_left = (fraction <= 0.5 ? 1 : farther) * left;
    double mass_right = (fraction <= 0.5 ? farther : 1) * right;
    double total = mass_left + mass_right;
    int outside = offset < 0 || offset > b->width;
    *slope = outside ? 0 : 2 * (mass_left / total) * (mass_right / total) * spread / b->temperature;
    return cell - reach_left + mass_right / total * spread;
}

__attribute__((visibility("default"))) void tabnsm_blend(const Blend *b) {
    double step = within(b->width / (double)b->n_cells / b->temperature, MIN_STEP, MAX_STEP);
    double of_one = remainder_of(step, -expm1(-step));
    for (int64_t i = 0; i < b->n; i++) {
        double x = b->prediction[i], y = b->target[i], slope, ignored;
        double residual = x - y, size = fabs(residual), delta = b->huber_delta;
        double huber = size < delta ? 0.5 * residual * residual : delta * (size - 0.5 * delta);
        double distance = soft_index(b, step, of_one, x, &slope) - soft_index(b, step, of_one, y, &ignored);
        double sign = (distance > 0) - (distance < 0), grid_weight = 1 - b->huber_weight;
        b->loss[i] = (float)(b->huber_weight * huber + grid_weight * b->unit * fabs(distance));
        b->slope[i] = (float)(b->huber_weight * within(residual, -delta, delta) +
                              grid_weight * b->unit * sign * slope);
    }
}
