#pragma once

namespace reckon {

/// What starts a plan on a TPU slice: reckon-worker and the launchers of PyTorch do not.
inline constexpr const char* kStartsOnTpus =
    "reckon export maxtext starts decoder models; others: a JAX or TensorFlow program of yours in "
    "workload.container";

}  // namespace reckon
