#include "executor/train/layouts/exchange_blocks.h"

#include <algorithm>
#include <optional>

#include "sim/base/check.h"
#include "sim/step/memory/folded_model.h"

namespace reckon {
namespace {

/// Which block has the layer's own parameters.
std::vector<std::optional<std::size_t>> block_of_layer(const RankModel& model,
                                                       const ParameterLayout& layout,
                                                       const std::vector<ZeroBlock>& blocks) {
  std::vector<std::optional<std::size_t>> of(model.made.size());
  for (const ParameterSlot& slot : layout.slots) {
    const auto behind = std::ranges::upper_bound(blocks, slot.first, {},
                                                 [](const ZeroBlock& b) { return b.whole.first; });
    RECKON_CHECK(behind != blocks.begin());
    of[index(slot.layer)] = static_cast<std::size_t>(behind - blocks.begin()) - 1;
  }
  return of;
}

}  // namespace

std::vector<ZeroBlock> exchange_blocks(const ModelGraph& model, const ParameterLayout& layout) {
  const std::vector<std::size_t> groups = first_of_groups(model);
  std::vector<ZeroBlock> blocks;
  std::optional<std::size_t> open;  // group of the last block
  for (const ParameterSlot& slot : layout.slots) {
    const auto behind = std::ranges::upper_bound(groups, index(slot.layer));
    const auto group = static_cast<std::size_t>(behind - groups.begin()) - 1;
    if (open != group) blocks.push_back({.whole = {slot.first, 0}, .trained = {}});
    open = group;
    ZeroBlock& block = blocks.back();
    block.whole.count += slot.count;
    if (!slot.trained) continue;
    const bool joins = !block.trained.empty() &&
                       block.trained.back().first + block.trained.back().count == slot.first;
    if (joins)
      block.trained.back().count += slot.count;
    else
      block.trained.push_back({slot.first, slot.count});
  }
  return blocks;
}

std::vector<BlockUse> block_uses(const RankModel& model, const ParameterLayout& layout,
                                 const std::vector<ZeroBlock>& blocks, const Schedule& schedule,
                                 std::size_t actions) {
  const auto block_of = block_of_layer(model, layout, blocks);
  std::vector<BlockUse> uses;
  std::vector<std::optional<std::size_t>> last_use(blocks.size());  // index in `uses`
  const auto note = [&](std::optional<std::size_t> block, std::size_t action) {
    if (!block) return;
    std::optional<std::size_t>& known = last_use[*block];
    // It would be gathered when the use before it begins.
    if (known && uses[*known].last >= uses.back().first) {
      uses[*known].last = action;
      return;
    }
    known = uses.size();
    uses.push_back({*block, action, action});
  };
  for (std::size_t t = 0; t < actions; ++t) {
    const RankLayer& layer = model.layers[schedule.actions[t].layer];
    if (layer.is_exchange()) continue;
    note(block_of[index(layer.origin)], t);
    if (layer.layer.tied_to) note(block_of[index(*layer.layer.tied_to)], t);
  }
  return uses;
}

}  // namespace reckon
