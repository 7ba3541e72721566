#include "sim/accuracy/tables/batch_scaling.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("epochs grow with the batch by the critical batch of McCandlish et al. 2018") {
  // 11 printed epochs stand for 10.5. B_crit = 512: 10.5 (1 + 1024/512) / (1 + 256/512) = 21, in
  // the 21st epoch.
  CHECK(epochs_at({256, 11}, 1024, 1.0 / 512) == 21);
  CHECK(epochs_at({256, 11}, 256, 1.0 / 512) == 11);
  CHECK(epochs_at({256, 11}, 4096, 0) == 11);  // no batch costs more
  // A target reached in the first epoch stands for half of one: 0.5 x 9 / 1.5 = 3.
  CHECK(epochs_at({256, 1}, 4096, 1.0 / 512) == 3);
}

TEST_CASE("epochs never fall when the batch grows, and never below one") {
  for (const double inverse : {0.0, 1e-4, 1e-2}) {
    double before = 1;
    for (double batch = 1; batch < 1e5; batch *= 2) {
      const double epochs = epochs_at({64, 7}, batch, inverse);
      CHECK(epochs >= before);
      before = epochs;
    }
  }
}

TEST_CASE("the critical batch of a task is found from its targets") {
  // Two targets whose samples double at a batch of 1,024 = 2^10.
  std::vector<std::vector<BatchEpochs>> targets(2);
  for (const double batch : {64.0, 256.0, 1024.0, 4096.0}) {
    const double more = 1 + batch / 1024;
    targets[0].push_back({batch, 20 * more + 0.5});
    targets[1].push_back({batch, 90 * more + 0.5});
  }
  CHECK(inverse_critical_batch(targets) == Approx(1.0 / 1024));
  CHECK(given_of(targets[0]).batch == 1024);
  // Epochs that stay say that no batch costs more; one batch a target says nothing.
  for (auto& target : targets)
    for (auto& point : target) point.epochs = 5;
  CHECK(inverse_critical_batch(targets) == 0);
  for (auto& target : targets) target.resize(1);
  CHECK(inverse_critical_batch(targets) == 0);
}
