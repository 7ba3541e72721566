#pragma once
#include <string>

#include "planner/planner.h"

// Pieces of what `reckon plan` prints that more than one of its files takes.
namespace reckon {

/// Appends the text in lines of at most `width` characters behind `head`, which is blank from the
/// second line on.
void add_lines(std::string& out, const std::string& head, const std::string& text, int width);

/// What tells a plan from another: its place, or its strategy where the place is the same.
std::string told_apart(const planner::RankedPlan& plan, const planner::RankedPlan& from);

/// What to type for a measurement; "" where no file holds its plan.
std::string command_for(const planner::Answer& answer, const planner::Measurement& measurement);

/// "What would change the choice" and "What to measure first", each with its heading; "" where it
/// was not asked for.
std::string sensitivity_text(const planner::Answer& answer, int width);
std::string measurements_text(const planner::Answer& answer, int width);

}  // namespace reckon
