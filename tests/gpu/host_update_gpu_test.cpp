#include "executor/cuda/exchange/host_update.h"

#include <catch2/catch.hpp>

#include "executor/cuda/memory/weights.h"
#include "gpu/device_layouts.h"

// The host's update of an offloaded optimizer by several threads: the bits of one.
using namespace reckon;
using namespace reckon::test;

namespace {

constexpr std::size_t kSome = 3 * std::size_t(cuda::kHostPiece) + 1234;  // pieces, and a last one

std::vector<float> drawn_numbers(std::size_t count, double seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(std::sin(seed * static_cast<double>(i + 1)));
  return values;
}

/// Two ranges that end inside pieces, one that two pieces share, and gaps that nothing trains.
std::vector<TrainedRange> ranges_across_pieces() {
  constexpr auto each = static_cast<std::size_t>(cuda::kHostPiece);
  return {{.first = 3, .count = 1000},
          {.first = each - 10, .count = 30, .decays = false},
          {.first = each + 100, .count = 2 * each + 7}};
}

/// As a LayoutMaker whose ranks have so many threads of their own.
class WithThreads final : public LayoutMaker {
 public:
  WithThreads(std::unique_ptr<LayoutMaker> made, int threads)
      : workers_(threads), made_(std::move(made)) {}
  std::unique_ptr<ZeroExchange> make_zero(const RankInLayout& rank, ZeroOptions options) override {
    return made_->make_zero(with_mine(rank), std::move(options));
  }
  std::unique_ptr<GradientExchange> make_all_reduce(const RankInLayout& rank,
                                                    AllReduceOptions options) override {
    return made_->make_all_reduce(with_mine(rank), std::move(options));
  }
  std::unique_ptr<StepRuntime> make_runtime(const RankInLayout& rank, const RuntimeOptions& passes,
                                            ZeroExchange* gathers) override {
    return made_->make_runtime(with_mine(rank), passes, gathers);
  }

 private:
  RankInLayout with_mine(const RankInLayout& r) {
    return {r.model, r.layout, r.parameters, r.replicas, r.groups, workers_};
  }
  Workers workers_;
  std::unique_ptr<LayoutMaker> made_;
};

/// Whose first layer is several pieces of the host's memory, on two ranks too.
ModelGraph wide_perceptron() {
  LayerList net(4);
  LayerId x = net.add("image", InputLayer{}, std::vector<LayerId>{});
  x = net.add("wide", Linear{.in = 48, .out = 2048}, x);
  x = net.add("relu", Activation{ActivationKind::relu}, x);
  net.set_group("head");
  x = net.add("fc", Linear{.in = 2048, .out = 4}, x);
  net.add("loss", SoftmaxCrossEntropy{4}, x);
  return network(SampleUnit::image, {48}, net);
}

}  // namespace

TEST_CASE("the host's update has the bits of one thread with any number of threads") {
  for (const OptimizerRule& rule :
       {OptimizerRule(SgdMomentum{.weight_decay = 0.01F}), OptimizerRule(AdamW{})}) {
    FlatOptimizer alone(rule, kSome, ranges_across_pieces());
    std::vector<float> expected = drawn_numbers(kSome, 0.7);
    for (int step = 0; step < 3; ++step)
      alone.update(step, 0.01, 0.5, expected, drawn_numbers(kSome, 1.3 + step));
    CHECK(expected != drawn_numbers(kSome, 0.7));
    for (const int threads : {1, 4}) {
      Workers workers(threads);
      FlatOptimizer optimizer(rule, kSome, ranges_across_pieces());
      std::vector<float> values = drawn_numbers(kSome, 0.7);
      for (int step = 0; step < 3; ++step)
        cuda::update_on_host(optimizer, workers, step, 0.01, 0.5, values,
                             drawn_numbers(kSome, 1.3 + step));
      CHECK(values == expected);
      for (std::size_t k = 0; k < alone.state().size(); ++k)
        CHECK(std::ranges::equal(optimizer.state()[k], alone.state()[k]));
    }
  }
}

TEST_CASE("the host's norm and sums have the same bits with any number of threads") {
  const std::vector<float> values = drawn_numbers(kSome, 0.3), more = drawn_numbers(kSome, 2.1);
  Workers one(1), four(4);
  const double squares = cuda::squared_norm_on_host(one, values);
  CHECK(cuda::squared_norm_on_host(four, values) == squares);
  // Sums of so many positive numbers in double, in two orders [Higham 2002, Sec. 4.2].
  CHECK(squares == Approx(squared_norm(values)).epsilon(2 * double(kSome) * 0x1p-53));
  const auto piece = std::span(values).first(std::size_t(cuda::kHostPiece));
  CHECK(cuda::squared_norm_on_host(four, piece) == squared_norm(piece));
  CHECK(cuda::squared_norm_on_host(four, {}) == 0);
  for (Workers* workers : {&one, &four}) {
    std::vector<float> sums = values;
    cuda::add_on_host(*workers, sums, more);
    bool same = true;
    for (std::size_t i = 0; i < kSome; ++i) same = same && sums[i] == values[i] + more[i];
    CHECK(same);
  }
}

TEST_CASE("an offloaded optimizer has the bits of one thread and of the device with four threads") {
  require_device();
  auto job = small_job(wide_perceptron(), Optimizer::adamw, 1e-3, 4);
  job.precision = GENERATE(Precision::fp32, Precision::bf16);
  const auto precision =
      job.precision == Precision::bf16 ? cuda::DevicePrecision::bf16 : cuda::DevicePrecision::fp32;
  const auto train = [&](const PlannedWorkload& cut, int threads) {
    return train_under(cut, 3, {}, LossScale::kFirst, [&] {
      return std::make_unique<WithThreads>(device_maker(precision)(), threads);
    });
  };
  for (const double clip_norm : {0.0, 0.05})
    for (const int stage : {0, 1, 2, 3}) {
      INFO("stage " << stage << ", clipped to " << clip_norm);
      job.optimizer_settings.clip_norm = clip_norm;
      auto cut = under(job, {.data = 2, .zero_stage = stage}, 1);  // two passes a step
      const auto own = on_devices(cut, 3, precision);
      cut.strategy.layout.offload_optimizer = true;
      const auto runs = train(cut, 1);
      check_same(train(cut, 4), runs);
      if (clip_norm == 0) check_same(runs, own);
    }
}
