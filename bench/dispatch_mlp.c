#include "dispatch.h"
bool bench_mlp(bench_dispatch *run) { (void)run; return true; }
