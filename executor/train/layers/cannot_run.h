#pragma once
#include "sim/base/diagnostic.h"
#include "sim/model/graph.h"

// Which layers GraphRuntime has code for.
namespace reckon {

/// What GraphRuntime cannot run, each naming its layer; empty: it runs the model.
Diagnostics cannot_run(const ModelGraph& model);

}  // namespace reckon
