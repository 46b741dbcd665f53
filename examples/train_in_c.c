/* Trains the network of train_in_c.py: ./train train.so STEPS RUNTIME_LIBRARIES */
#include <math.h>
#include <stdio.h>

#include "train.h"

static float noise(void) { return 2.0f * (float)rand() / (float)RAND_MAX - 1.0f; }

int main(int count, char** arguments) {
  for (int n = 3; n < count; ++n)
    if (!dlopen(arguments[n], RTLD_NOW | RTLD_GLOBAL)) return fprintf(stderr, "%s\n", dlerror()), 1;
  train_program train;
  if (train_open(&train, arguments[1])) return fprintf(stderr, "%s\n", dlerror()), 1;
  int steps = atoi(arguments[2]);

  /* The data: the network is to learn sin(3 a) b. Its parameters stand twice: a step reads one copy, writes the other. */
  static float x[64][2], y[64], w1[2][2][16], b1[2][16], w2[2][16];
  for (int i = 0; i < 64; ++i) {
    x[i][0] = noise();
    x[i][1] = noise();
    y[i] = sinf(3 * x[i][0]) * x[i][1];
  }
  for (int j = 0; j < 16; ++j) {
    w1[0][0][j] = noise();
    w1[0][1][j] = noise();
    w2[0][j] = noise();
  }

  const int64_t of_w1[] = {2, 16}, of_16[] = {16}, of_x[] = {64, 2}, of_64[] = {64};
  const float rate = 0.2f;
  float loss;
  for (int step = 0; step <= steps; ++step) {
    int from = step % 2, to = 1 - from;
    const train_array inputs[] = {{w1[from], of_w1}, {b1[from], of_16}, {w2[from], of_16},
                                  {x, of_x},         {y, of_64},        {&rate, NULL}};
    void* outputs[] = {&loss, w1[to], b1[to], w2[to]};
    int status = train_run(&train, inputs, outputs);
    if (status) return fprintf(stderr, "%s\n", train_message(status)), 1;
    if (step * 5 % (steps > 0 ? steps : 1) == 0) printf("step %5d  loss %.5f\n", step, loss);
  }
  train_close(&train);
  return 0;
}
