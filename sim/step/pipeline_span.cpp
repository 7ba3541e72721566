#include "sim/step/pipeline_span.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/base/check.h"
#include "sim/step/pipeline_passes.h"

namespace reckon {
namespace {

/// One step, pass by pass.
class PlayedPipeline {
 public:
  PlayedPipeline(const Layout& l, std::span<const StagePasses> stages, Seconds transfer)
      : layout_(l), transfer_(transfer) {
    for (int s = 0; s < l.pipeline; ++s)
      stages_.push_back({.times = stages[std::size_t(s)], .passes = passes_of_stage(l, s)});
    const std::size_t all = std::size_t(l.micro_batches * parts());
    arrived_[0].resize(all);
    arrived_[1].resize(all);
  }

  Seconds span() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < layout_.pipeline; ++s)
        while (take_next(s)) moved = true;
    }
    Seconds end{};
    for (const Stage& stage : stages_) {
      RECKON_CHECK(stage.next == stage.passes.size());
      end = std::max(end, stage.free);
    }
    return end;
  }

 private:
  struct Stage {
    StagePasses times;
    std::vector<PipelinePass> passes;
    std::size_t next = 0;
    Seconds free{}, link_free{};
  };

  std::int64_t parts() const { return std::int64_t{layout_.pipeline} * layout_.interleave; }
  /// When the input of a part's pass is there; nullopt: not yet known.
  std::optional<Seconds>& input(bool forward, std::int64_t micro_batch, std::int64_t part) {
    return arrived_[forward ? 0 : 1][std::size_t(micro_batch * parts() + part)];
  }

  bool take_next(int s) {
    Stage& stage = stages_[std::size_t(s)];
    if (stage.next == stage.passes.size()) return false;
    const PipelinePass& pass = stage.passes[stage.next];
    const std::int64_t part = std::int64_t{pass.part} * layout_.pipeline + s;
    const std::int64_t last = parts() - 1;
    // The first part reads the samples, and the last one turns round.
    const bool has_input = pass.forward ? part == 0 : part == last;
    const std::optional<Seconds> from =
        has_input ? std::optional(Seconds{}) : input(pass.forward, pass.micro_batch, part);
    if (!from) return false;
    const Seconds whole = pass.forward ? stage.times.forward : stage.times.backward;
    stage.free = std::max(stage.free, *from) + whole / double(layout_.interleave);
    ++stage.next;
    const std::int64_t to = part + (pass.forward ? 1 : -1);
    if (to < 0 || to > last) return true;
    stage.link_free = std::max(stage.link_free, stage.free) + transfer_;
    input(pass.forward, pass.micro_batch, to) = stage.link_free;
    return true;
  }

  const Layout& layout_;
  const Seconds transfer_;
  std::vector<Stage> stages_;
  std::vector<std::optional<Seconds>> arrived_[2];  // forward, backward; [micro-batch][part]
};

Seconds played(const Layout& l, std::int64_t micro_batches, std::span<const StagePasses> stages,
               Seconds transfer) {
  Layout some = l;
  some.micro_batches = micro_batches;
  return PlayedPipeline(some, stages, transfer).span();
}

}  // namespace

Seconds pipeline_span(const Layout& l, std::span<const StagePasses> stages, Seconds transfer) {
  RECKON_CHECK(std::ssize(stages) == l.pipeline);
  constexpr std::int64_t kSettled = 8, kPlayed = 16;  // a stage
  const std::int64_t most = kPlayed * l.pipeline;
  if (l.micro_batches <= most) return played(l, l.micro_batches, stages, transfer);
  const std::int64_t before = kSettled * l.pipeline;
  const Seconds all = played(l, most, stages, transfer);
  const Seconds each = (all - played(l, before, stages, transfer)) / double(most - before);
  return all + each * double(l.micro_batches - most);
}

}  // namespace reckon
