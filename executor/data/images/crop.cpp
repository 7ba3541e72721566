#include "executor/data/images/crop.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace reckon::data {
namespace {

/// The part of a line of pixels that makes one pixel of the scaled line.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;  // sum to 1
};

/// A triangle around each scaled pixel's centre, one source pixel wide, or one scaled pixel where
/// that is more.
std::vector<Taps> taps_of(double begin, double length, double low, double high, std::int64_t to) {
  const double scale = length / double(to);
  const double support = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<std::size_t>(to));
  for (std::size_t k = 0; k < all.size(); ++k) {
    const double center = begin + (double(k) + 0.5) * scale;
    const auto first = static_cast<std::int64_t>(std::max(low, std::floor(center - support + 0.5)));
    const auto end = static_cast<std::int64_t>(std::min(high, std::floor(center + support + 0.5)));
    Taps& taps = all[k];
    taps.first = std::min(first, static_cast<std::int64_t>(high) - 1);
    double sum = 0;
    std::vector<double> weights;
    for (std::int64_t x = taps.first; x < std::max(end, taps.first + 1); ++x) {
      const double weight = std::max(0.0, 1 - std::abs(double(x) + 0.5 - center) / support);
      weights.push_back(weight);
      sum += weight;
    }
    for (const double weight : weights)
      taps.weights.push_back(
          static_cast<float>(sum > 0 ? weight / sum : 1 / double(weights.size())));
  }
  return all;
}

}  // namespace

Box random_box(std::int64_t width, std::int64_t height, RandomStream& random) {
  constexpr double kLeast = 0.08, kNarrowest = 3.0 / 4, kWidest = 4.0 / 3;
  constexpr int kTries = 10;
  const double w = double(width), h = double(height);
  for (int k = 0; k < kTries; ++k) {
    const double area = w * h * (kLeast + (1 - kLeast) * random.uniform());
    const double low = std::log(kNarrowest), high = std::log(kWidest);
    const double ratio = std::exp(low + (high - low) * random.uniform());
    const double box_w = std::round(std::sqrt(area * ratio));
    const double box_h = std::round(std::sqrt(area / ratio));
    const double across = random.uniform(), down = random.uniform();  // drawn whatever fits
    if (box_w < 1 || box_h < 1 || box_w > w || box_h > h) continue;
    return {std::floor(across * (w - box_w + 1)), std::floor(down * (h - box_h + 1)), box_w, box_h};
  }
  double box_w = w, box_h = h;
  if (w / h < kNarrowest) box_h = std::max(1.0, std::round(w / kNarrowest));
  if (w / h > kWidest) box_w = std::max(1.0, std::round(h * kWidest));
  return {std::floor((w - box_w) / 2), std::floor((h - box_h) / 2), box_w, box_h};
}

Box center_box(const Image& image, std::int64_t resize, std::int64_t height, std::int64_t width) {
  const double w = double(image.width), h = double(image.height);
  const double pixels = std::min(w, h) / double(resize);  // of the image, to one of the sample
  const double box_w = double(width) * pixels, box_h = double(height) * pixels;
  return {(w - box_w) / 2, (h - box_h) / 2, box_w, box_h};
}

void resample(const Image& image, const Box& box, const Box& within, bool mirrored,
              std::int64_t height, std::int64_t width, std::span<float> planes) {
  const std::vector<Taps> across =
      taps_of(box.left, box.width, within.left, within.left + within.width, width);
  const std::vector<Taps> down =
      taps_of(box.top, box.height, within.top, within.top + within.height, height);
  const std::int64_t top = down.front().first;
  const std::int64_t bottom = down.back().first + std::ssize(down.back().weights);
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto out_w = static_cast<std::size_t>(width), out_h = static_cast<std::size_t>(height);
  const auto row_bytes = static_cast<std::size_t>(image.width) * channels;
  // Rows first: (bottom - top, channels, width).
  std::vector<float> rows(static_cast<std::size_t>(bottom - top) * channels * out_w);
  for (std::int64_t y = top; y < bottom; ++y) {
    const std::uint8_t* const line = &image.pixels[static_cast<std::size_t>(y) * row_bytes];
    float* const out = &rows[static_cast<std::size_t>(y - top) * channels * out_w];
    for (std::size_t x = 0; x < out_w; ++x) {
      const Taps& taps = across[mirrored ? out_w - 1 - x : x];
      const std::uint8_t* pixel = line + static_cast<std::size_t>(taps.first) * channels;
      float sums[4] = {};
      for (const float weight : taps.weights) {
        for (std::size_t c = 0; c < channels; ++c) sums[c] += weight * float(pixel[c]);
        pixel += channels;
      }
      for (std::size_t c = 0; c < channels; ++c) out[c * out_w + x] = sums[c];
    }
  }
  for (std::size_t y = 0; y < out_h; ++y) {
    const Taps& taps = down[y];
    for (std::size_t c = 0; c < channels; ++c) {
      float* const out = &planes[(c * out_h + y) * out_w];
      std::fill_n(out, out_w, 0.0F);
      for (std::size_t k = 0; k < taps.weights.size(); ++k) {
        const auto row = static_cast<std::size_t>(taps.first - top) + k;
        const float* const in = &rows[(row * channels + c) * out_w];
        const float weight = taps.weights[k];
        for (std::size_t x = 0; x < out_w; ++x) out[x] += weight * in[x];
      }
    }
  }
}

}  // namespace reckon::data
