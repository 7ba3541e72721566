#pragma once
#include <cstddef>
#include <vector>

#include "executor/comm/zero_exchange.h"
#include "executor/train/layouts/exchange_blocks.h"

namespace reckon {

/// Has the blocks of one pass gathered, each a block ahead.
class BlockWalk {
 public:
  explicit BlockWalk(ZeroExchange& exchange) : exchange_(exchange) {}

  void begin_pass(const std::vector<BlockUse>& uses) {
    uses_ = &uses;
    next_ = 0;
    held_.clear();
  }
  void before(std::size_t action) {
    while (next_ < uses_->size() && (*uses_)[next_].first == action) {
      const std::vector<BlockUse>& uses = *uses_;
      if (next_ == 0) exchange_.prefetch(uses[0].block);
      exchange_.wait_for(uses[next_].block);
      held_.push_back(uses[next_++]);
      if (next_ < uses.size()) exchange_.prefetch(uses[next_].block);
    }
  }
  void after(std::size_t action) {
    std::erase_if(held_, [&](const BlockUse& use) {
      if (use.last == action) exchange_.release(use.block);
      return use.last == action;
    });
  }

 private:
  ZeroExchange& exchange_;
  const std::vector<BlockUse>* uses_ = nullptr;
  std::size_t next_ = 0;
  std::vector<BlockUse> held_;
};

}  // namespace reckon
