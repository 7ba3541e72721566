#pragma once
#include <span>

#include "sim/base/quantity.h"
#include "sim/scenario/layout.h"

// How long a pipeline's schedule takes where a stage goes on to its next pass while it sends: what
// reckon-worker does on CPUs (executor/train/layouts/pipeline/runtime.h).
namespace reckon {

/// A stage's passes of one micro-batch, over all its parts.
struct StagePasses {
  Seconds forward{}, backward{};
};

/// From the first pass to the end of the last, over all stages. Every stage takes its passes in the
/// order of passes_of_stage(), each when its input has arrived. A stage sends one transfer at a
/// time, in the order in which they are made, to the next stage and to the one before it alike, as
/// through one network interface; `transfer` is the time of one. What arrives waits for nothing.
///
/// In the steady state of 1F1B a micro-batch takes no less than max(c, 2 t, c + 2 t (p - 1) / p) on
/// stages that all take c, with transfers of t: the first stage has p micro-batches on their way,
/// and each returns after p passes and 2 (p - 1) transfers. Of more than 16 micro-batches a stage
/// (16 x p) the rest takes as long as the last 8 x p did.
Seconds pipeline_span(const Layout& layout, std::span<const StagePasses> stages, Seconds transfer);

}  // namespace reckon
