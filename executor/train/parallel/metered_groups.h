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
      : groups_{metered(groups.tensor), metered(groups.context), metered(groups.expert)} {}

  const ModelGroups& groups() const { return groups_; }
  CommunicationTaken take() { return std::exchange(*taken_, {}); }

 private:
  Communicator* metered(Communicator* group) {
    if (group == nullptr || group->size() == 1) return group;
    return all_.emplace_back(make_metered_communicator(*group, *taken_)).get();
  }

  std::unique_ptr<CommunicationTaken> taken_ = std::make_unique<CommunicationTaken>();
  std::vector<std::unique_ptr<Communicator>> all_;
  ModelGroups groups_;
};

}  // namespace reckon
