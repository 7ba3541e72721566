#include "kernels/class_parts.h"

#include "gpu/device.h"
#include "kernels/cross_entropy.h"

using namespace reckon;

TEST_CASE("classes that ranks share out make the loss of all classes") {
  require_device();
  const std::int64_t ranks = GENERATE(1, 2, 3), each = 21, rows = 37, classes = ranks * each;
  const Draw<float> logits(static_cast<std::size_t>(rows * classes), 7);
  const auto target_of = [&](std::int64_t row) { return row * 5 % classes; };
  std::vector<double> log_sums, losses;
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < classes; ++j)
      sum += std::exp(logits.values[static_cast<std::size_t>(row * classes + j)]);
    log_sums.push_back(std::log(sum));
    losses.push_back(log_sums.back() -
                     logits.values[static_cast<std::size_t>(row * classes + target_of(row))]);
  }
  std::vector<float> all;
  const auto count = static_cast<std::size_t>(rows);
  for (std::int64_t k = 0; k < ranks; ++k) {
    std::vector<float> own, targets;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = k * each; j < (k + 1) * each; ++j)
        own.push_back(logits.elements[static_cast<std::size_t>(row * classes + j)]);
      targets.push_back(static_cast<float>(target_of(row) - k * each));
    }
    const DeviceArray x(own), at(targets);
    const DeviceArray<float> sums(count), parts(count), found(2 * count);
    finish(gpu::cross_entropy_forward(rows, each, each, x.data, at.data, sums.data, parts.data,
                                      nullptr));
    finish(gpu::class_parts(rows, each, at.data, sums.data, parts.data, found.data, nullptr));
    for (const float number : found.host(2 * count)) all.push_back(number);
  }
  const DeviceArray there(all);
  const DeviceArray<float> sums(count), joined(count);
  finish(gpu::join_class_parts(rows, ranks, there.data, sums.data, joined.data, nullptr));
  const auto bound = [&](double) {
    return 0x1p-22 * (1 + std::log(double(classes)) + double(ranks));
  };
  check_near(sums.values(), log_sums, bound);
  check_near(joined.values(), losses, bound);
}
