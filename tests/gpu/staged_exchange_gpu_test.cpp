#include "executor/cuda/exchange/staged.h"

#include <thread>

#include "executor/comm/thread_communicator.h"
#include "executor/cuda/exchange/all_reduce.h"
#include "executor/cuda/runtime/runtime.h"
#include "executor/train/networks.h"
#include "executor/train/recipe/recipe.h"
#include "gpu/device.h"

using namespace reckon;

namespace {

/// What the host's exchange is told, in its order.
class Listening final : public GradientExchange {
 public:
  explicit Listening(std::unique_ptr<GradientExchange> inner) : inner_(std::move(inner)) {}
  void start(ParameterView view) override {
    view_ = view;
    inner_->start(view);
  }
  void gradient_ready(ParameterRange range) override {
    ranges.push_back(range);
    // They are there, and no others'.
    const auto part = view_.gradients.subspan(range.first, range.count);
    finite = finite && std::ranges::all_of(part, [](float g) { return std::isfinite(g); });
    inner_->gradient_ready(range);
  }
  ExchangeTimes finish_step(std::int64_t step, double rate) override {
    return inner_->finish_step(step, rate);
  }
  std::vector<std::span<float>> optimizer_state() override { return inner_->optimizer_state(); }
  void restore_optimizer_state() override { inner_->restore_optimizer_state(); }
  std::vector<ParameterRange> ranges;
  bool finite = true;

 private:
  std::unique_ptr<GradientExchange> inner_;
  ParameterView view_;
};

std::vector<float> steps_on_device(const ModelGraph& model, bool staged, Listening** heard) {
  const RuntimeOptions options{.batch = 2, .seed = 3};
  auto runtime = cuda::make_device_runtime(model, options, cuda::DevicePrecision::fp32, nullptr);
  auto alone = make_thread_communicators(1);
  const AllReduceOptions rule{.optimizer = SgdMomentum{},
                              .trained = trained_ranges(runtime->layout())};
  std::unique_ptr<GradientExchange> exchange;
  if (staged) {
    auto host = std::make_unique<Listening>(make_all_reduce_exchange(*alone[0], rule));
    *heard = host.get();
    exchange = cuda::make_staged_exchange(std::move(host), runtime->layout(), nullptr);
  } else {
    exchange = cuda::make_device_exchange(nullptr, rule, runtime->layout(), nullptr);
  }
  for (std::size_t i = 0; i < runtime->values().size(); ++i)
    runtime->values()[i] = static_cast<float>(0.4 * std::sin(static_cast<double>(7 * i + 1)));
  runtime->to_device();
  exchange->start(runtime->exchanged());
  SampleBatch data(sample_format(model), 2);
  for (std::int64_t step = 0; step < 4; ++step) {
    for (std::int64_t b = 0; b < 2; ++b)
      fill_synthetic(sample_format(model), 5, step * 2 + b, data, b);
    runtime->begin_step();
    runtime->forward(data.view(), {step, 0}, true);
    exchange->begin_backward();
    runtime->backward(1, [&](ParameterRange range) { exchange->gradient_ready(range); });
    CHECK(exchange->finish_step(step, 0.05).next_step == step + 1);
    if (staged) {
      // Every trained parameter once, last layer first.
      std::size_t count = 0, before = runtime->layout().count;
      for (const ParameterRange& r : (*heard)->ranges) {
        CHECK(r.first + r.count <= before);
        before = r.first;
        count += r.count;
      }
      CHECK(count == runtime->layout().count);
      CHECK((*heard)->finite);
      (*heard)->ranges.clear();
    }
  }
  runtime->to_host();
  return {runtime->values().begin(), runtime->values().end()};
}

}  // namespace

TEST_CASE("a device's gradients through an exchange of the host make the steps of the device's") {
  require_device();
  const ModelGraph model = GENERATE(test::small_resnet(), test::small_gpt2(0));
  Listening* heard = nullptr;
  const auto staged = steps_on_device(model, true, &heard);
  const auto own = steps_on_device(model, false, nullptr);
  // The same update in the same order of operations, on the host and on the device.
  REQUIRE(staged.size() == own.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    REQUIRE(staged[i] == Approx(own[i]).epsilon(1e-5).margin(1e-6));
}

TEST_CASE("devices of a worker add up before its first rank hands the sums on") {
  require_device();
  /// Another device that always has the same gradients.
  struct Twin final : cuda::DeviceReducer {
    int size() const override { return 2; }
    void broadcast_values(std::span<float>) override { ++broadcasts; }
    void queue_sums(std::span<const std::span<float>> ranges, cudaStream_t stream) override {
      for (const std::span<float> range : ranges) {
        std::vector<float> host(range.size());
        REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
        cuda::copy_to_host(host.data(), range.data(), range.size_bytes());
        for (float& g : host) g *= 2;
        cuda::copy_to_device(range.data(), host.data(), range.size_bytes());
      }
    }
    void join(cudaStream_t) override {}
    int broadcasts = 0;
  } twin;
  const ModelGraph model = test::small_gpt2(0);
  auto runtime = cuda::make_device_runtime(model, {.batch = 2, .seed = 3},
                                           cuda::DevicePrecision::fp32, nullptr);
  auto alone = make_thread_communicators(1);
  const auto values_of = [&](cuda::StagedWorker worker, double scale) {
    for (std::size_t i = 0; i < runtime->values().size(); ++i)
      runtime->values()[i] = static_cast<float>(0.4 * std::sin(static_cast<double>(7 * i + 1)));
    runtime->to_device();
    auto host = make_all_reduce_exchange(
        *alone[0], {.optimizer = SgdMomentum{}, .trained = trained_ranges(runtime->layout())});
    const auto exchange =
        cuda::make_staged_exchange(std::move(host), runtime->layout(), nullptr, worker);
    exchange->start(runtime->exchanged());
    SampleBatch data(sample_format(model), 2);
    for (std::int64_t b = 0; b < 2; ++b) fill_synthetic(sample_format(model), 5, b, data, b);
    runtime->begin_step();
    runtime->forward(data.view(), {0, 0}, true);
    runtime->backward(scale, [&](ParameterRange range) { exchange->gradient_ready(range); });
    CHECK(exchange->finish_step(0, 0.05).next_step == 1);
    runtime->to_host();
    return std::vector<float>(runtime->values().begin(), runtime->values().end());
  };
  auto hosts = make_thread_communicators(1);
  const auto doubled = values_of({.devices = &twin, .hosts = hosts[0].get()}, 0.5);
  CHECK(doubled == values_of({}, 1));  // half of the loss each: a power of two is exact
  CHECK(twin.broadcasts == 2);         // of the first values, and of the new ones
}

TEST_CASE("every device swaps with every other, as much as each has for the other, or nothing") {
  require_device();
  constexpr int kRanks = 3;
  // Rank a has (2 a + b) % 4 numbers for rank b: none for some, and some for itself.
  const auto count = [](int a, int b) { return static_cast<std::size_t>((2 * a + b) % 4); };
  const auto number = [](int a, int b, std::size_t i) {
    return static_cast<float>(100 * a + 10 * b) + static_cast<float>(i);
  };
  auto hosts = make_thread_communicators(kRanks);
  std::vector<std::vector<float>> got(kRanks);
  std::vector<std::jthread> threads;
  for (auto& host : hosts)
    threads.emplace_back([&, mine = host.get()] {
      const int own = mine->rank();
      const auto group = cuda::make_staged_group(*mine);
      std::vector<float> goes;
      std::size_t comes = 0;
      for (int r = 0; r < kRanks; ++r) {
        for (std::size_t i = 0; i < count(own, r); ++i) goes.push_back(number(own, r, i));
        comes += count(r, own);
      }
      cuda::DeviceBuffer<float> out(std::int64_t(goes.size())), in{std::int64_t(comes)};
      cuda::copy_to_device(out.data(), goes.data(), goes.size() * sizeof(float));
      std::vector<cuda::DeviceSwap> swaps;
      std::size_t sent = 0, received = 0;
      for (int r = 0; r < kRanks; ++r) {
        swaps.push_back({std::as_bytes(out.span().subspan(sent, count(own, r))),
                         std::as_writable_bytes(in.span().subspan(received, count(r, own)))});
        sent += count(own, r);
        received += count(r, own);
      }
      group->queue_swaps(swaps, nullptr);
      got[std::size_t(own)].resize(comes);
      cuda::copy_to_host(got[std::size_t(own)].data(), in.data(), comes * sizeof(float));
    });
  threads.clear();
  for (int own = 0; own < kRanks; ++own) {
    std::vector<float> expected;
    for (int r = 0; r < kRanks; ++r)
      for (std::size_t i = 0; i < count(r, own); ++i) expected.push_back(number(r, own, i));
    CHECK(got[std::size_t(own)] == expected);
  }
}
