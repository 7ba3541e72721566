#pragma once
#include <cstddef>
#include <string>
#include <vector>

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

/// Sentences: which change of a number makes another plan the choice. Empty: it was not asked for.
std::vector<std::string> changes_of_choice(const planner::Answer& answer);
struct Advice {
  std::string text, command;  // command "": none
};
/// What is worth measuring first: those that pay, at least the one that is worth most.
std::vector<Advice> advice_of(const planner::Answer& answer);

/// The plans that a person would ask about next, each with what it is: the next cheaper, the next
/// faster, and the best of other places, machines or numbers of nodes; at most `most`, none twice.
struct Alternative {
  std::string what;  // "next cheaper"
  const planner::RankedPlan* plan = nullptr;
};
std::vector<Alternative> alternatives_of(const planner::Answer& answer, std::size_t most);

/// "lowest mean cost, deadline 12h@95%".
std::string question_in_words(const planner::Answer& answer);

/// "What would change the choice" and "What to measure first", each with its heading; "" where it
/// was not asked for.
std::string sensitivity_text(const planner::Answer& answer, int width);
/// "Next", with the command to type; "" where the question came from no command line.
std::string next_text(const planner::Answer& answer);
std::string measurements_text(const planner::Answer& answer, int width);

}  // namespace reckon
