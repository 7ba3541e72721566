#include <algorithm>
#include <cmath>

#include "executor/train/data/formats.h"
#include "kernels/record_id.h"
#include "sim/base/random.h"

namespace reckon::data {
namespace {

constexpr Purpose kClick{"click_sample"}, kTaste{"click_taste"};

/// Draws k of 1 ... n with p(k) ~ k^-s, without a table: rejection-inversion [Hoermann and
/// Derflinger 1996, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), section 2].
class ZipfDraw {
 public:
  ZipfDraw(std::int64_t n, double s) : n_(double(n)), s_(s) {
    from_ = area(1.5) - 1;
    to_ = area(n_ + 0.5);
    squeeze_ = 2 - at(area(2.5) - height(2));
  }

  std::int64_t operator()(RandomStream& stream) const {
    for (;;) {
      const double u = to_ + stream.uniform() * (from_ - to_);
      const double x = at(u), k = std::clamp(std::floor(x + 0.5), 1.0, n_);
      if (k - x <= squeeze_ || u >= area(k + 0.5) - height(k)) return std::int64_t(k);
    }
  }

 private:
  double height(double x) const { return std::pow(x, -s_); }
  /// Below the heights, from 1 to x; and the x of an area.
  double area(double x) const {
    const double log_x = std::log(x), t = (1 - s_) * log_x;
    return log_x * (std::abs(t) > 1e-8 ? std::expm1(t) / t : 1 + t / 2);
  }
  double at(double a) const {
    const double t = std::max(-1.0, a * (1 - s_));
    return std::exp(a * (std::abs(t) > 1e-8 ? std::log1p(t) / t : 1 - t / 2));
  }

  double n_, s_;
  double from_ = 0, to_ = 0, squeeze_ = 0;
};

/// A log of impressions that were clicked or not: ids by Zipf's law, numbers as synthetic data has
/// them, and clicks with the probability of a logistic model with one hidden weight for each row.
class ClickSource final : public DataSource {
 public:
  ClickSource(SampleFormat format, std::uint64_t seed, std::int64_t samples, double exponent)
      : format_(std::move(format)), seed_(seed), samples_(std::max<std::int64_t>(samples, 1)) {
    for (const SampleField& field : format_.inputs)
      for (const IdRange& ids : field.ids) draws_.emplace_back(ids.below, exponent);
  }
  std::int64_t samples() const override { return samples_; }

  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    fill_synthetic(format_, seed_, index, batch, at);
    RandomStream stream(seed_, static_cast<std::uint32_t>(index >> 32), kClick,
                        static_cast<std::uint32_t>(index));
    double score = 0;
    std::size_t range = 0;
    for (std::size_t k = 0; k < format_.inputs.size(); ++k) {
      const std::span<float> values = batch.input(k, at);
      for (const IdRange& ids : format_.inputs[k].ids) {
        double of_field = 0;
        for (std::int64_t i = ids.first; i < ids.first + ids.count; ++i) {
          const std::int64_t id = draws_[range](stream) - 1;
          values[static_cast<std::size_t>(i)] = record_number(id);
          of_field += taste(range, id);
        }
        score += of_field / std::sqrt(double(ids.count));
        ++range;
      }
    }
    const double clicked = 1 / (1 + std::exp(-score));
    for (float& label : batch.target(0, at)) label = stream.uniform() < clicked ? 1.0F : 0.0F;
  }

 private:
  /// The hidden weight of a row: normal, deviation 1.5.
  double taste(std::size_t range, std::int64_t id) const {
    constexpr double kDeviation = 1.5;
    RandomStream stream(seed_, static_cast<std::uint32_t>(range), kTaste,
                        static_cast<std::uint32_t>(id));
    return kDeviation * stream.normal();
  }

  SampleFormat format_;
  std::uint64_t seed_;
  std::int64_t samples_;
  std::vector<ZipfDraw> draws_;  // by range of ids, inputs in their order
};

}  // namespace

std::unique_ptr<DataSource> open_clicks(SampleFormat format, std::uint64_t seed,
                                        std::int64_t samples, double zipf_exponent) {
  bool looks_up = false;
  for (const SampleField& field : format.inputs) looks_up = looks_up || !field.ids.empty();
  const bool one_label = format.targets.size() == 1 && !format.targets[0].ids.empty() &&
                         format.targets[0].ids[0].below == 2;
  if (!looks_up || !one_label)
    throw DataError(
        "clicks are ids and whether they were clicked: the model takes no ids of embedding tables, "
        "or does not end with one sigmoid cross entropy");
  return std::make_unique<ClickSource>(std::move(format), seed, samples, zipf_exponent);
}

}  // namespace reckon::data
