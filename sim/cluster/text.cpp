#include "sim/base/check.h"
#include "sim/cluster/life.h"

// The words of reports and traces.
namespace reckon {

std::string_view to_text(Badput b) {
  switch (b) {
    case Badput::provisioning:
      return "provisioning";
    case Badput::waiting:
      return "waiting";
    case Badput::initialization:
      return "initialization";
    case Badput::data_loading:
      return "data_loading";
    case Badput::checkpoint_save:
      return "checkpoint_save";
    case Badput::checkpoint_restore:
      return "checkpoint_restore";
    case Badput::lost_work:
      return "lost_work";
  }
  RECKON_CHECK(false && "no such cause");
  return "";
}

std::string_view to_text(Interruption i) {
  switch (i) {
    case Interruption::preemption:
      return "preemption";
    case Interruption::maintenance:
      return "maintenance";
    case Interruption::failure:
      return "failure";
  }
  RECKON_CHECK(false && "no such interruption");
  return "";
}

std::string_view to_text(CostPart p) {
  switch (p) {
    case CostPart::accelerators:
      return "accelerators";
    case CostPart::machines:
      return "machines";
    case CostPart::storage:
      return "storage";
    case CostPart::network:
      return "network";
    case CostPart::management:
      return "management";
    case CostPart::idle:
      return "idle";
  }
  RECKON_CHECK(false && "no such part");
  return "";
}

}  // namespace reckon
