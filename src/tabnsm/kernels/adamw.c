/* One step of AdamW on the CPU: the gradient's norm is clipped, the weights move, and so does
 * their running average, in one call.
 *
 * One thread does it all: the weights of a model are few beside the work of a step.
 */
#include <math.h>
#include <stdint.h>

#define N_SUMS 16

typedef struct {
    int64_t n_tensors;
    const int64_t *size;
    float *const *weight;
    const float *const *gradient;
    float *const *mean, *const *square; /* running averages of the gradient and of its square */
    float *const *step;                 /* steps of each tensor so far */
    float *const *average;              /* of the weights; or NULL */
    const float *decay;                 /* what a step leaves of each tensor's weights */
    double learning_rate, clip, beta1, beta2, epsilon, keep;
} Descent;

/* In the order of the tensors, in sums that do not depend on the width of vectors. */
static double norm_of(const Descent *d) {
    double total = 0.0;
    for (int64_t t = 0; t < d->n_tensors; t++) {
        const float *gradient = d->gradient[t];
        int64_t n = d->size[t], whole = n / N_SUMS * N_SUMS;
        double sum[N_SUMS] = {0.0};
        for (int64_t i = 0; i < whole; i += N_SUMS)
            for (int k = 0; k < N_SUMS; k++)
                sum[k] += (double)gradient[i + k] * (double)gradient[i + k];
        for (int64_t i = whole; i < n; i++)
            sum[0] += (double)gradient[i] * (double)gradient[i];
        for (int k = 0; k < N_SUMS; k++) total += sum[k];
    }
    return sqrt(total);
}

__attribute__((visibility("default"))) void tabnsm_adamw(const Descent *d) {
    double share = d->clip / (norm_of(d) + 1e-6);
    float scale = share > 1.0 ? 1.0f : (float)share; /* one that is not finite goes on */
    float to_mean = (float)(1.0 - d->beta1), to_square = (float)(1.0 - d->beta2);
    float beta2 = (float)d->beta2, epsilon = (float)d->epsilon, moved = (float)(1.0 - d->keep);
    for (int64_t t = 0; t < d->n_tensors; t++) {
        float *restrict weight = d->weight[t], *restrict mean = d->mean[t];
        float *restrict square = d->square[t];
        const float *restrict gradient = d->gradient[t];
        double step = d->step[t][0] + 1.0, root = sqrt(1.0 - pow(d->beta2, step));
        float rate = (float)(d->learning_rate / (1.0 - pow(d->beta1, step)));
        float over_root = (float)(1.0 / root), decay = d->decay[t];
        d->step[t][0] = (float)step;
        for (int64_t i = 0; i < d->size[t]; i++) {
            float g = gradient[i] * scale;
            mean[i] += to_mean * (g - mean[i]);
            square[i] = beta2 * square[i] + to_square * g * g;
            weight[i] = decay * weight[i] - rate * mean[i] / (sqrtf(square[i]) * over_root + epsilon);
        }
        if (!d->average) continue;
        float *restrict average = d->average[t];
        for (int64_t i = 0; i < d->size[t]; i++) average[i] += moved * (weight[i] - average[i]);
    }
}
