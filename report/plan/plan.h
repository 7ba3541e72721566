#pragma once
#include <string>

#include "planner/planner.h"

// What `reckon plan` prints.
namespace reckon {

/// The ranked plans with their ranges, why the first, the front, and what was left out and why.
std::string plan_table(const planner::Answer& answer, int width = 100);

struct BaselineInputs;  // report/plan/memo.h
/// `reckon plan --format json`: one object, indented by two, with its newline. `baseline`: nullptr
/// where none was asked for.
std::string plan_json(const planner::Answer& answer, const BaselineInputs* baseline);

/// The front as a chart of characters with its legend; "" where there are no two plans to compare.
std::string front_text(const planner::Answer& answer, int width = 100);
/// The same as an SVG file.
std::string front_svg(const planner::Answer& answer);

/// "2 x a3-highgpu-8g with 8 H100-SXM5-80, gcp us-east4, spot".
std::string place_text(const planner::RankedPlan& plan);

}  // namespace reckon
