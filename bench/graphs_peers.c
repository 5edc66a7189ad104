/* Workloads of graphs.py as loops in C, in the written order: every sum and product is rounded, none are contracted or
 * reordered. Compiled by graphs_peers.py with -O3 -march=native -ffp-contract=off; outputs go to memory that is there. */

typedef float lanes __attribute__((vector_size(64), aligned(4)));

enum { WIDTH = 16, VECTORS = 8, BLOCK = WIDTH * VECTORS };

static float larger(float x, float y) { return x > y || x != x ? x : y; }

void chain(const float *restrict x, float *restrict result, long count)
{
    for (long i = 0; i < count; i++)
        result[i] = larger(((x[i] * 2 + 1) * x[i] - 3) / 4, -x[i]);
}

/* The steps inside, so that elements stay in registers, and as many of them side by side as the latency takes. */
void recurrence(const float *restrict x, float *restrict result, long count)
{
    long i = 0;
    for (; i + BLOCK <= count; i += BLOCK) {
        lanes y[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            y[v] = *(const lanes *)(x + i + WIDTH * v);
        for (int step = 0; step < 1000; step++)
            for (int v = 0; v < VECTORS; v++)
                y[v] = y[v] * 0.9f + 0.1f;
        for (int v = 0; v < VECTORS; v++)
            *(lanes *)(result + i + WIDTH * v) = y[v];
    }
    for (; i < count; i++) {
        float y = x[i];
        for (int step = 0; step < 1000; step++)
            y = y * 0.9f + 0.1f;
        result[i] = y;
    }
}

void sum(const float *restrict x, float *restrict result, long count)
{
    float total = 0;
    for (long i = 0; i < count; i++)
        total += x[i];
    *result = total;
}
