#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "executor/comm/metered_communicator.h"
#include "executor/train/parallel/model_place.h"

namespace reckon {

/// The groups of a place, and what exchanges in them have taken since it was last asked.
class MeteredGroups {
 public:
  explicit MeteredGroups(const ModelGroups& groups)
      : groups_{metered(groups.tensor, taken_->tensor), metered(groups.context, taken_->context),
                metered(groups.expert, taken_->expert)} {}

  const ModelGroups& groups() const { return groups_; }
  ModelExchanges take() { return std::exchange(*taken_, {}); }

 private:
  Communicator* metered(Communicator* group, CommunicationTaken& taken) {
    if (group == nullptr || group->size() == 1) return group;
    return all_.emplace_back(make_metered_communicator(*group, taken)).get();
  }

  std::unique_ptr<ModelExchanges> taken_ = std::make_unique<ModelExchanges>();
  std::vector<std::unique_ptr<Communicator>> all_;
  ModelGroups groups_;
};

}  // namespace reckon
