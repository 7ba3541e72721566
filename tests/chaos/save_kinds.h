#pragma once
#include <string>
#include <vector>

#include "chaos/training_job.h"

namespace reckon::test {

/// A training under a layout and a policy of saves. Policies change no bit: one undisturbed
/// training is that of all kinds of the layout.
struct SaveKind {
  std::string layout;
  TrainingKind kind;
};
/// All layouts under all policies; those that follow one another differ in both.
std::vector<SaveKind> save_kinds();

}  // namespace reckon::test
