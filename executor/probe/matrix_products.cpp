#include <fmt/format.h>

#include <algorithm>

#include "executor/probe/numbers.h"
#include "executor/probe/probe.h"
#include "executor/train/products/matrix.h"

namespace reckon {
namespace {

template <class T>
ProbeRecord product(const ProbeBench& bench, ProductSize s) {
  const AlignedBuffer<T> a = numbers<T>(s.m * s.k), b = numbers<T>(s.k * s.n);
  AlignedBuffer<T> c(std::size_t(s.m * s.n));
  ProbeRecord r;
  r.kind = "matrix_product";
  r.item = fmt::format("{} x {} x {}", s.m, s.n, s.k);
  r.precision = sizeof(T) == sizeof(float) ? "fp32" : "fp64";
  r.threads = bench.workers.count();
  r.m = s.m;
  r.n = s.n;
  r.k = s.k;
  r.flops = Flops{2.0 * double(s.m) * double(s.n) * double(s.k)};
  // Repetitions of about a millisecond, so that the clock's resolution does not matter.
  const auto inner = std::int64_t(std::max(1.0, 2e7 / r.flops.v));
  summarize(
      repeat_timed(
          bench.rule, inner,
          [&] {
            multiply<T>(bench.workers, s, {a.data(), s.k}, {b.data(), s.n}, c.data(), s.n, false);
          }),
      r);
  return r;
}

template <class T>
void products(const ProbeBench& bench, std::vector<ProbeRecord>& out) {
  const ProductSize sizes[] = {{128, 128, 128},    {256, 256, 256},    {512, 512, 512},
                               {1, 1024, 1024},    {16, 1024, 1024},   {64, 1024, 1024},
                               {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}};
  FlopsPerSecond best{1e9};
  for (const ProductSize& s : sizes) {
    const Flops flops{2.0 * double(s.m) * double(s.n) * double(s.k)};
    if (flops / best > kLongestInBudgets * bench.rule.budget) continue;
    out.push_back(product<T>(bench, s));
    best = std::max(best, out.back().flops / out.back().min);
  }
}

}  // namespace

std::vector<ProbeRecord> probe_matrix_products(const ProbeBench& bench) {
  std::vector<ProbeRecord> out;
  products<float>(bench, out);
  products<double>(bench, out);
  return out;
}

ProbeRecord probe_product(const ProbeBench& bench, ProductSize size) {
  return product<float>(bench, size);
}

ProbeRecord probe_reference_product(const ProbeBench& bench) {
  return probe_product(bench, {256, 256, 256});
}

}  // namespace reckon
