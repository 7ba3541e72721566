#pragma once
#include "sim/cluster/life/life.h"

// One colour for one meaning on the whole page; page.css says which in light, dark and print.
namespace reckon::html {

inline constexpr const char* kTrainingColor = "var(--main)";

inline const char* color_of(Badput cause) {
  switch (cause) {
    case Badput::provisioning:
      return "var(--warm)";
    case Badput::waiting:
      return "var(--mist)";
    case Badput::initialization:
      return "var(--leaf)";
    case Badput::data_loading:
      return "var(--sand)";
    case Badput::checkpoint_save:
      return "var(--second)";
    case Badput::checkpoint_restore:
      return "var(--plum)";
    case Badput::lost_work:
      return "var(--hot)";
    case Badput::stragglers:
      return "var(--slate)";
  }
  return "var(--slate)";
}

}  // namespace reckon::html
