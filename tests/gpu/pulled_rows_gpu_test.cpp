#include <map>

#include "executor/cuda/exchange/staged.h"
#include "executor/cuda/runtime/runtime.h"
#include "executor/train/data/source.h"
#include "executor/train/networks.h"
#include "executor/train/pulled_tables.h"
#include "executor/train/trainer.h"
#include "gpu/device.h"

// A device that has the rows of a step alone of a recommender's tables.
using namespace reckon;

namespace {

constexpr std::int64_t kPulling = 8, kPullingSteps = 5;

/// Plain SGD in the host's memory, which holds whole tables and gives out the rows that are named.
class HeldTables final : public GradientExchange {
 public:
  explicit HeldTables(const ParameterLayout& layout) : layout_(layout) {}
  void draw_tables_by(std::function<void(std::size_t, std::span<float>)> draw) override {
    for (const ParameterSlot& slot : layout_.slots) {
      if (!slot.pulled) continue;
      Table& table = tables_[slot.first];
      table.width = std::size_t(slot.global[1]);
      table.values.resize(std::size_t(slot.global[0]) * table.width);
      draw(slot.first, table.values);
    }
  }
  void start(ParameterView view) override { view_ = view; }
  bool pulls_rows() const override { return true; }
  std::vector<std::size_t> need_rows(std::size_t at, std::span<const std::int64_t> ids) override {
    Table& table = tables_.at(at);
    std::vector<std::size_t> places;
    for (const std::int64_t id : ids) {
      const auto [named, fresh] = table.places.try_emplace(id, table.places.size());
      places.push_back(named->second);
      if (fresh)
        std::copy_n(table.row(id), table.width,
                    view_.values.begin() + std::ptrdiff_t(at + named->second * table.width));
    }
    return places;
  }
  void forget_passes() override {
    for (auto& [at, table] : tables_) table.places.clear();
  }
  void gradient_ready(ParameterRange) override {}
  ExchangeTimes finish_step(std::int64_t step, double rate) override {
    const auto move = [&](float* value, std::size_t gradient) {
      *value -= static_cast<float>(rate) * view_.gradients[gradient];
    };
    for (const ParameterSlot& slot : layout_.slots)
      for (std::size_t i = 0; !slot.pulled && i < slot.count; ++i)
        move(&view_.values[slot.first + i], slot.first + i);
    for (auto& [at, table] : tables_)
      for (const auto& [id, place] : table.places)
        for (std::size_t j = 0; j < table.width; ++j)
          move(table.row(id) + j, at + place * table.width + j);
    forget_passes();
    return {.next_step = step + 1};
  }
  std::vector<WholeTable> fetch_tables(bool) override {
    std::vector<WholeTable> all;
    for (const auto& [at, table] : tables_) all.push_back({at, table.values});
    return all;
  }
  std::vector<std::span<float>> optimizer_state() override { return {}; }
  void restore_optimizer_state() override {}

 private:
  struct Table {
    std::size_t width = 0;
    std::vector<float> values;
    std::map<std::int64_t, std::size_t> places;
    float* row(std::int64_t id) { return values.data() + std::size_t(id) * width; }
  };
  const ParameterLayout layout_;
  ParameterView view_;
  std::map<std::size_t, Table> tables_;
};

/// Two passes a step; by name.
std::map<std::string, std::vector<float>> trained_by(bool on_device) {
  const ModelGraph model = test::small_recommender();
  const ParameterLayout layout = pulled_layout(model, kPulling);
  const RuntimeOptions passes{.batch = kPulling / 2, .seed = 3, .layout = layout};
  Workers workers(1);
  std::unique_ptr<GradientExchange> exchange = std::make_unique<HeldTables>(layout);
  std::unique_ptr<StepRuntime> runtime;
  if (on_device) {
    runtime = cuda::make_device_runtime(model, passes, cuda::DevicePrecision::fp32, nullptr);
    exchange = cuda::make_staged_exchange(std::move(exchange), runtime->layout(), nullptr);
  } else {
    runtime = make_cpu_runtime(model, passes, workers);
  }
  const auto data = open_data({.format = DataFormat::clicks}, {}, model, 9, 256, 1.1);
  PlannedOptimizer settings;
  settings.learning_rate = 0.5;
  Trainer trainer(model,
                  {.share = {.global_batch = kPulling, .first_of_step = 0, .own = kPulling},
                   .micro_batch = kPulling / 2,
                   .steps = kPullingSteps,
                   .seed = 4,
                   .optimizer = settings,
                   .optimizer_buffers = 1},
                  *data, *exchange, workers, std::move(runtime));
  trainer.start();
  trainer.train({});
  std::map<std::string, std::vector<float>> weights;
  for (const StateTensor& tensor : trainer.trained()) {
    std::vector<float>& values = weights[tensor.slice.name];
    values.resize(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  }
  return weights;
}

}  // namespace

TEST_CASE("a device with the rows of a step alone takes the steps of the CPU, to rounding") {
  require_device();
  const auto here = trained_by(false), there = trained_by(true);
  REQUIRE(here.size() == 8);
  REQUIRE(there.size() == here.size());
  for (const auto& [name, values] : here) {
    INFO(name);
    REQUIRE(there.contains(name));
    const std::vector<float>& got = there.at(name);
    REQUIRE(got.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      REQUIRE(got[i] == Approx(values[i]).epsilon(1e-5).margin(1e-6));
  }
}
