#include "executor/cuda/exchange/host_update.h"

#include <vector>

#include "executor/cuda/memory/weights.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

/// body(first, count) of pieces of so many elements.
template <class Body>
void for_host_pieces(Workers& workers, std::size_t elements, Body body) {
  workers.run_pieces(count_of(elements), kHostPiece, [&](std::int64_t begin, std::int64_t end) {
    body(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

void update_on_host(FlatOptimizer& optimizer, Workers& workers, std::int64_t step,
                    double learning_rate, double gradient_scale, std::span<float> weights,
                    std::span<const float> gradients) {
  RECKON_CHECK(weights.size() == gradients.size());
  for_host_pieces(workers, gradients.size(), [&](std::size_t first, std::size_t count) {
    optimizer.update_part(step, learning_rate, gradient_scale, first, weights,
                          gradients.subspan(first, count));
  });
}

double squared_norm_on_host(Workers& workers, std::span<const float> values) {
  constexpr auto kEach = static_cast<std::size_t>(kHostPiece);
  std::vector<double> squares((values.size() + kEach - 1) / kEach);
  for_host_pieces(workers, values.size(), [&](std::size_t first, std::size_t count) {
    squares[first / kEach] = squared_norm(values.subspan(first, count));
  });
  double sum = 0;
  for (const double of_piece : squares) sum += of_piece;
  return sum;
}

void add_on_host(Workers& workers, std::span<float> to, std::span<const float> more) {
  RECKON_CHECK(to.size() == more.size());
  for_host_pieces(workers, to.size(), [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) to[i] += more[i];
  });
}

}  // namespace reckon::cuda
