#include "executor/train/layouts/exchange_blocks.h"

#include <algorithm>
#include <optional>

#include "sim/base/check.h"
#include "sim/step/memory/folded_model.h"

namespace reckon {
namespace {

/// Which blocks have the layer's own parameters, ascending.
std::vector<std::vector<std::size_t>> blocks_of_layers(const RankModel& model,
                                                       const ParameterLayout& layout,
                                                       const std::vector<ZeroBlock>& blocks) {
  std::vector<std::vector<std::size_t>> of(model.made.size());
  for (const ParameterSlot& slot : layout.slots) {
    if (slot.copied) continue;
    const auto behind = std::ranges::upper_bound(blocks, slot.first, {},
                                                 [](const ZeroBlock& b) { return b.whole.first; });
    RECKON_CHECK(behind != blocks.begin());
    const auto block = static_cast<std::size_t>(behind - blocks.begin()) - 1;
    std::vector<std::size_t>& own = of[index(slot.layer)];
    if (own.empty() || own.back() != block) own.push_back(block);
  }
  return of;
}

}  // namespace

std::vector<ZeroBlock> exchange_blocks(const ModelGraph& model, const ParameterLayout& layout) {
  const std::vector<std::size_t> groups = first_of_groups(model);
  std::vector<ZeroBlock> blocks;
  std::optional<std::size_t> open;  // group of the last block
  for (const ParameterSlot& slot : layout.slots) {
    if (slot.copied) continue;
    const auto behind = std::ranges::upper_bound(groups, index(slot.layer));
    const auto group = static_cast<std::size_t>(behind - groups.begin()) - 1;
    if (open != group || blocks.back().of_experts != slot.of_experts)
      blocks.push_back({.whole = {slot.first, 0}, .trained = {}, .of_experts = slot.of_experts});
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
                                 std::size_t actions, std::size_t from) {
  const auto blocks_of = blocks_of_layers(model, layout, blocks);
  std::vector<BlockUse> uses;
  std::vector<std::optional<std::size_t>> last_use(blocks.size());  // index in `uses`
  const auto note_block = [&](std::size_t block, std::size_t action) {
    std::optional<std::size_t>& known = last_use[block];
    // It would be gathered when the use before it begins.
    if (known && uses[*known].last >= uses.back().first) {
      uses[*known].last = action;
      return;
    }
    known = uses.size();
    uses.push_back({block, action, action});
  };
  const auto note = [&](LayerId layer, std::size_t action) {
    for (const std::size_t block : blocks_of[index(layer)]) note_block(block, action);
  };
  for (std::size_t t = from; t < actions; ++t) {
    const RankLayer& layer = model.layers[schedule.actions[t].layer];
    if (layer.is_exchange()) continue;
    note(layer.origin, t);
    if (layer.layer.tied_to) note(*layer.layer.tied_to, t);
  }
  return uses;
}

}  // namespace reckon
