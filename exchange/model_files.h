#pragma once
#include "sim/scenario/scenario.h"

namespace reckon {

/// Replaces each `model: {huggingface: FILE}`, `{onnx: FILE}` and `{fx: FILE}` of the scenario and
/// of its jobs by what the file holds, so that make_plan needs no files of others. FILE is relative
/// to the scenario; a folder stands for its config.json. All mistakes at once: those of the file at
/// their place in it, an unreadable file and a missing sequence_length at the scenario's.
Diagnostics resolve_model_files(ScenarioFile& file);

}  // namespace reckon
