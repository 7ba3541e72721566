#pragma once
#include <array>
#include <cstdint>
#include <span>

// Dynamic loss scaling of fp16: the loss, and so each gradient, is multiplied by a scale that keeps
// small gradients from vanishing and is made smaller when large ones overflow [Micikevicius 2018,
// arXiv:1710.03740, section 3.2; NVIDIA, "Train With Mixed Precision", "Automatic loss scaling"].
namespace reckon {

/// With the constants of PyTorch's torch.amp.GradScaler: 2^16 at first, doubled behind 2,000 steps
/// in a row without an overflow, halved behind a step with one, which updates nothing.
class LossScale {
 public:
  static constexpr float kFirst = 65536;  // factor on the loss, 2^16
  static constexpr std::int64_t kGrowsBehind = 2000;
  /// Where the smallest normal gradient of fp16 would be scaled below its spacing: no scale is of
  /// use any more.
  static constexpr float kLeast = 0x1p-24f;  // factor on the loss

  explicit LossScale(float first = kFirst) : kept_{first, 0, 0} {}

  double scale() const { return double{kept_[0]}; }  // factor on the loss
  /// Steps in a row without an overflow, since the scale has changed.
  std::int64_t good_steps() const { return static_cast<std::int64_t>(kept_[1]); }
  /// All that updated nothing: the optimizer does not count them.
  std::int64_t skipped_steps() const { return static_cast<std::int64_t>(kept_[2]); }

  /// A step is over; `overflowed`: it was skipped.
  void step_done(bool overflowed) {
    if (overflowed) {
      kept_ = {kept_[0] / 2, 0, kept_[2] + 1};
      return;
    }
    kept_[1] += 1;
    if (good_steps() < kGrowsBehind) return;
    constexpr float kMost = 0x1p126f;  // twice this is a float, too
    kept_[0] = kept_[0] <= kMost ? 2 * kept_[0] : kept_[0];
    kept_[1] = 0;
  }

  /// What a checkpoint keeps, as a tensor of that name: scale, good steps, skipped steps; whole
  /// numbers up to 2^24 are exact.
  static constexpr const char* kTensor = "loss_scale";
  std::span<float, 3> state() { return kept_; }

 private:
  std::array<float, 3> kept_;
};

}  // namespace reckon
