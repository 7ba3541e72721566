#pragma once
#include "sim/scenario/layout.h"

namespace reckon {

/// Does the host take gradients as each block makes them, so that the device keeps one block's?
/// Zero_stage 2 and 3 with an offloaded optimizer, also on one device [Ren et al. 2021,
/// "ZeRO-Offload", Sec. 3.2: only the working parameters stay]; stages 0 and 1 keep them until the
/// step (DeepSpeed, Megatron-LM).
inline bool gradients_leave(const Layout& layout) {
  return layout.offload_optimizer && layout.zero_stage >= 2;
}

}  // namespace reckon
